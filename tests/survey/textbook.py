#!/usr/bin/env python3
"""A survey of tasks from textbooks: stocks, queues, dice, races, towers, boxes that are pushed.

    textbook.py make FOLDER FROM TO        write instances FROM to TO - 1
    textbook.py run FOLDER --psifold build/psifold

Their latent states are those of the exact model (truth.py). Each is shown as a number, as the
numbers that describe it with a little noise, or as twelve numbers drawn for it. Instances 0 to 287
were looked at."""

import itertools
import math
import sys

import numpy as np
from truth import explore, partition
from vectors import command_line

SHOWS = ["number", "noisy", "drawn"]
NOISE, DRAWN = 0.08, 12


def limited(x, most, least=0):
    return min(max(x, least), most)


# --- the tasks: starts, a row of outcomes (probability, next state, reward) for each action, steps
# at most ---


def inventory(_):
    """Ten places, demand of Poisson(3): orders of 0 to 5."""
    demand = [math.exp(-3) * 3**k / math.factorial(k) for k in range(8)]
    demand.append(1 - sum(demand))

    def ordered(x, a):
        stock = min(10, x + a)
        return [
            (p, max(0, stock - d), 5.0 * min(d, stock) - (stock - x) - 0.5 * max(0, stock - d))
            for d, p in enumerate(demand)
        ]

    return [5], lambda x: [ordered(x, a) for a in range(6)], 100


def machine(_):
    """It wears out, is kept or replaced; its colour means nothing."""

    def rows(x):
        keep = [
            (p / 3, (limited(x[0] + more, 9), colour), -float(x[0]))
            for more, p in ((1, 0.7), (0, 0.3))
            for colour in range(3)
        ]
        return [keep, [(1 / 3, (0, colour), -20.0) for colour in range(3)]]

    return [(0, 0)], rows, 100


def windy(_):
    """Sutton and Barto's grid with wind, from anywhere."""
    wind = [0, 0, 0, 1, 1, 1, 2, 2, 1, 0]

    def moved(x, dx, dy):
        after = limited(x[0] + dx, 9), limited(x[1] + dy + wind[x[0]], 6)
        return [(1, None if after == (7, 3) else after, -1.0)]

    cells = [cell for cell in itertools.product(range(10), range(7)) if cell != (7, 3)]
    return cells, lambda x: [moved(x, *to) for to in ((0, 1), (0, -1), (1, 0), (-1, 0))], 50


def race(_):
    """Speed is changed, one time in ten in vain; who leaves the track begins again."""

    def changed(x, dv, dw):
        row = []
        for p, hit in ((0.9, 1), (0.1, 0)):
            v, w = limited(x[2] + hit * dv, 2), limited(x[3] + hit * dw, 1, -1)
            at = x[0] + v, x[1] + w
            row.append(
                (p, None, 0.0)
                if at[0] > 5
                else (p, (*at, v, w) if 0 <= at[1] < 3 else (0, 1, 0, 0), -1.0)
            )
        return row

    return (
        [(0, 1, 0, 0)],
        lambda x: [changed(x, *c) for c in itertools.product((-1, 0, 1), repeat=2)],
        100,
    )


def queue(_):
    """Whoever comes is let in, or not."""

    def rows(n):
        return [
            [
                (
                    pc * ps,
                    limited(n + (come and let and n < 12) - (serve and n > 0), 12),
                    -0.1 * n + (come and let and n < 12),
                )
                for come, pc in ((1, 0.4), (0, 0.6))
                for serve, ps in ((1, 0.5), (0, 0.5))
            ]
            for let in (0, 1)
        ]

    return [0], rows, 100


def towers(_):
    """Of Hanoi, three discs."""

    def moved(x, peg, to):
        top = [min((d for d in range(3) if x[d] == p), default=3) for p in range(3)]
        if top[peg] < top[to]:
            x = tuple(to if d == top[peg] else x[d] for d in range(3))
        return [(1, None, 1.0) if x == (2, 2, 2) else (1, x, 0.0)]

    return (
        [(0, 0, 0)],
        lambda x: [moved(x, *pegs) for pegs in itertools.permutations(range(3), 2)],
        200,
    )


def gambler(_):
    def staked(x, a):
        stake = min(a, x, 20 - x)
        return [
            (p, None if after in (0, 20) else after, float(after == 20))
            for p, after in ((0.4, x + stake), (0.6, x - stake))
        ]

    return list(range(1, 20)), lambda x: [staked(x, a) for a in (1, 2, 4)], 100


def lift(_):
    """Fetches somebody from a floor to the ground floor, and then the next."""

    def rows(x):
        floor, waits, inside = x
        doors = [(1, x, -2.0)]
        if inside and floor == 0:
            doors = [(0.2, (0, k, 0), 10.0) for k in range(1, 6)]
        elif not inside and floor == waits:
            doors = [(1, (floor, 0, 1), -1.0)]
        return [[(1, (limited(floor + up, 5), waits, inside), -1.0)] for up in (1, -1)] + [doors]

    return [(0, 3, 0)], rows, 100


def river(_):
    def rows(x):
        pay = float(x == 7)
        return [
            [(1, max(0, x - 1), 0.005 if x == 0 else 0.0)],
            [(0.35, min(7, x + 1), pay), (0.6, x, pay), (0.05, max(0, x - 1), pay)],
        ]

    return [0], rows, 100


def catch(_):
    def moved(x, a):
        at = limited(x[2] + a, 4)
        return [
            (1, None, 1.0 if at == x[1] else -1.0) if x[0] == 5 else (1, (x[0] + 1, x[1], at), 0.0)
        ]

    return [(0, c, 2) for c in range(5)], lambda x: [moved(x, a) for a in (-1, 0, 1)], 100


def deep_sea(rng):
    """Osband's: one of two actions, another one in every cell, leads to the right; there is the
    treasure."""
    side, right = 7, rng.integers(2, size=(7, 7))

    def moved(x, a):
        goes = a == right[x]
        reward = -0.01 / side * goes + float(goes and x[1] == side - 1)
        return [
            (
                1,
                None
                if x[0] == side - 1
                else (x[0] + 1, limited(x[1] + (1 if goes else -1), side - 1)),
                reward,
            )
        ]

    return [(0, 0)], lambda x: [moved(x, a) for a in (0, 1)], 100


def dice(_):
    """Pig: roll again, or keep what was rolled; a one loses it."""

    def rows(x):
        kept = x[0] + x[1]
        return [
            [(1 / 6, (x[0], 0), 0.0)]
            + [(1 / 6, (x[0], min(10 - x[0], x[1] + d)), 0.0) for d in range(2, 7)],
            [(1, None, 1.0) if kept >= 10 else (1, (kept, 0), -0.1)],
        ]

    return [(0, 0)], rows, 100


def parity(_):
    """Three switches of which only the parity counts, and a fourth that flickers."""

    def rows(x):
        return [
            [
                (
                    0.5,
                    (*tuple(x[i] ^ (i == a) for i in range(3)), z),
                    float(a == 3 and sum(x[:3]) % 2),
                )
                for z in (0, 1)
            ]
            for a in range(4)
        ]

    return [(0, 0, 0, 0)], rows, 100


def boxes(_):
    """A box on a floor of three by three is pushed into a corner."""

    def moved(x, dx, dy):
        at, box = (x[0] + dx, x[1] + dy), x[2:]
        pushed = (box[0] + dx, box[1] + dy) if at == box else box
        if not all(0 <= k < 3 for k in (*at, *pushed)):
            return [(1, x, -0.1)]
        return [(1, None, 1.0) if pushed == (2, 2) else (1, at + pushed, -0.1)]

    cells = [(i, j, 1, 1) for i in range(3) for j in range(3) if (i, j) != (1, 1)]
    return cells, lambda x: [moved(x, *to) for to in ((0, 1), (0, -1), (1, 0), (-1, 0))], 60


def ring(_):
    """Twelve places, every fourth alike, and something that does not matter."""

    def moved(x, a):
        return [
            (p / 3, (after, k), float(after % 4 == 0))
            for after, p in (((x[0] + a) % 12, 0.8), (x[0], 0.2))
            for k in range(3)
        ]

    return [(0, 0)], lambda x: [moved(x, a) for a in (1, -1, 0)], 100


def garnet(rng):
    """Fifteen states with two successors each, all of them twice."""
    after = rng.integers(15, size=(15, 3, 2))
    odds, pay = (
        rng.choice([0.5, 0.7, 0.9, 1.0], size=(15, 3)),
        rng.choice([0.0, 0.0, 0.0, 1.0, 2.0], size=(15, 3)),
    )

    def moved(x, a):
        p = odds[x[0], a]
        return [
            (q / 2, (int(after[x[0], a, i]), twin), pay[x[0], a])
            for i, q in ((0, p), (1, 1 - p))
            if q > 0
            for twin in (0, 1)
        ]

    return [(0, 0)], lambda x: [moved(x, a) for a in range(3)], 100


TASKS = {
    one.__name__: one
    for one in (
        inventory,
        machine,
        windy,
        race,
        queue,
        towers,
        gambler,
        lift,
        river,
        catch,
        deep_sea,
        dice,
        parity,
        boxes,
        ring,
        garnet,
    )
}


# --- the data ------------------------------------------------------------------------------------


def collected(model, starts, size, longest, rng):
    """States (None: the end), actions, rewards, lengths and ends of episodes by the random
    policy."""
    states, actions, rewards, lengths, ends = [], [], [], [], []
    cumulated = {
        state: [np.cumsum([p for p, _, _ in row]) for row in rows] for state, rows in model.items()
    }
    while len(actions) < size:
        state, n = starts[rng.integers(len(starts))], 0
        states.append(state)
        while n < longest and state is not None:
            action = int(rng.integers(len(model[state])))
            sums = cumulated[state][action]
            which = min(
                int(np.searchsorted(sums, rng.random() * sums[-1], side="right")), len(sums) - 1
            )
            _, state, reward = model[state][action][which]
            states.append(state)
            actions.append(action)
            rewards.append(reward)
            n += 1
        lengths.append(n)
        ends.append(state is None)
    return states, np.array(actions), np.array(rewards, float), np.array(lengths), np.array(ends)


def shown(show, states, rng):
    names = sorted({state for state in states if state is not None})
    number = {state: i for i, state in enumerate(names)} | {None: len(names)}
    which = np.array([number[state] for state in states])
    if show == "number":
        return which.astype(np.int64)[:, None]
    if show == "drawn":
        looks, noise = rng.normal(size=(len(names) + 1, DRAWN)), 0.1
    else:
        looks, noise = np.array([np.atleast_1d(state) for state in names], float), NOISE
        looks = np.vstack([looks, looks.min(0) - 5])
    return (looks[which] + noise * rng.normal(size=(len(which), looks.shape[1]))).astype(np.float32)


def instance(number):
    """Facts and arrays of one instance."""
    rng = np.random.default_rng([number, 0x7462])
    family = list(TASKS)[number % len(TASKS)]
    show = SHOWS[int(rng.integers(len(SHOWS)))]
    size = int(10 ** rng.uniform(3, 4.3))
    starts, rows, longest = TASKS[family](rng)
    model = explore(starts, rows)
    block = partition(model)
    states, actions, rewards, lengths, ends = collected(model, starts, size, longest, rng)
    seen = shown(show, states, rng)
    truth = np.array([block[state] for state in states], np.int32)
    n_actions = len(model[starts[0]])
    facts = {
        "number": number,
        "family": family,
        "dimensions": seen.shape[1],
        "markov": True,
        "decided": True,
        "latent_states": len(np.unique(truth)),
        "observations": len(set(states)),
        "actions": n_actions,
        "transitions": len(actions),
        "episodes": len(lengths),
        "weakest_pair_nats": None,
        "parameters": {"show": show},
    }
    return facts, {
        "observations": seen,
        "actions": actions,
        "rewards": rewards,
        "episode_lengths": lengths,
        "terminated": ends,
        "truncated": ~ends,
        "n_actions": np.int64(n_actions),
        "latent_states": truth,
    }


if __name__ == "__main__":
    sys.exit(command_line(__doc__, list(TASKS), instance))
