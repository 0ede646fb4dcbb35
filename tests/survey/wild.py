#!/usr/bin/env python3
"""A survey of tasks as outsiders bring them: any task, seen, paid and collected in any way.

    wild.py make FOLDER FROM TO        write instances FROM to TO - 1
    wild.py run FOLDER --psifold build/psifold

The number of an instance draws a task (wild_tasks.py), a way of seeing it, of paying, of acting and
of ending. Its latent states are those of the exact model, restricted to the states that the data
visit; where data leave open what they are, because an action was never taken, or where what is seen
does not tell them, being certain is wrong. From instance 10000 on, what differs is rare and spread
over many looks, and all else is plain. Instances 0 to 349 and 10000 to 10059 were looked at."""

import sys
from types import SimpleNamespace

import latent
import numpy as np
from adversarial import hidden_nats, restricted, same_partition
from truth import explore
from vectors import command_line
from wild_tasks import DOORS, TASKS

# --- ways of seeing ------------------------------------------------------------------------------
# Each takes a generator and a view: which look every row has, what describes each look, step,
# episode, and the action and reward before (0 at first). A row is of one look, or near enough to
# it, unless it is noted.


def drawn(rng, n, d):
    """n looks in d dimensions, at least 1 apart."""
    looks = rng.normal(size=(n, d))
    gaps = np.linalg.norm(looks[:, None] - looks[None], axis=2) + np.diag(np.full(n, np.inf))
    return looks / gaps.min()


def near(rng, looks, which, noise=0.08):
    return looks[which] + noise * rng.normal(size=(len(which), looks.shape[1]))


def one_hot(which, n):
    return np.eye(n)[which]


def number(rng, v):
    return rng.permutation(v.n)[v.which].astype(np.int64)[:, None]


def described(rng, v):
    return near(rng, v.places, v.which)


def mixed(rng, v):
    """One-hot, numbers that mean nothing, and a counter of steps."""
    return np.column_stack([one_hot(v.which, v.n), rng.normal(size=(len(v.which), 2)), v.step])


def multi(rng, v):
    """Whole numbers that describe it, among counters that do not matter."""
    return np.column_stack(
        [v.step % 5, v.places[v.which], rng.integers(3, size=len(v.which)), v.episode % 4]
    ).astype(np.int64)


def clock(rng, v):
    return np.column_stack([near(rng, v.places, v.which), v.step / 10])


def randomised(rng, v):
    """A gain, a colour and an offset for every episode."""
    d = 6
    looks, colour = drawn(rng, v.n, d), rng.normal(size=d)
    gain = rng.uniform(0.95, 1.05, v.episodes)[v.episode, None] if v.n < 15 else 1.0
    tint = rng.uniform(-5, 5, size=(v.episodes, 3))
    return np.column_stack(
        [
            near(rng, looks, v.which, 0.04) * gain,
            tint[v.episode],
            tint[v.episode] @ np.ones(3) * colour[0],
        ]
    )


def walk(rng, v):
    """Random walks that begin anew with every episode, or never."""
    steps = rng.normal(size=(len(v.which), 2))
    if rng.integers(2):
        path = np.cumsum(steps, 0)
    else:
        path = np.vstack([np.cumsum(steps[v.episode == e], 0) for e in range(v.episodes)])
    return np.column_stack([near(rng, drawn(rng, v.n, 4), v.which), 0.3 * path])


def heavy(rng, v):
    return np.column_stack(
        [near(rng, drawn(rng, v.n, 4), v.which), rng.standard_t(1.5, size=(len(v.which), 2))]
    )


def bits(rng, v):
    """Bits that say which, and coins."""
    width = max(1, int(np.ceil(np.log2(v.n))))
    code = rng.permutation(2**width)[: v.n]
    return np.column_stack(
        [code[v.which, None] >> np.arange(width) & 1, rng.integers(2, size=(len(v.which), 3))]
    ).astype(np.int64)


def echo(rng, v):
    """The action and the reward before stand beside it."""
    return np.column_stack(
        [
            near(rng, drawn(rng, v.n, 4), v.which),
            one_hot(v.action_before, v.n_actions),
            v.reward_before,
        ]
    )


def echo_whole(rng, v):
    return np.column_stack([rng.permutation(v.n)[v.which], v.action_before]).astype(np.int64)


def turned(rng, v):
    """What matters and what does not, mixed by a rotation."""
    both = np.column_stack(
        [near(rng, drawn(rng, v.n, 4), v.which, 0.06), 3 * rng.normal(size=(len(v.which), 3))]
    )
    return both @ np.linalg.qr(rng.normal(size=(7, 7)))[0]


def guises(rng, v):
    """Three looks of each, of very unequal frequency."""
    which = v.which * 3 + rng.choice(3, p=[0.9, 0.09, 0.01], size=len(v.which))
    return near(rng, drawn(rng, 3 * v.n, 5), which)


def overlapping(rng, v):
    """Clouds that overlap: which it is, is not always seen."""
    return near(rng, v.places, v.which, 0.3)


def circle(rng, v):
    """Arcs of a circle, with gaps between them."""
    angle = (
        2 * np.pi * (rng.permutation(v.n)[v.which] + rng.uniform(0.15, 0.85, len(v.which))) / v.n
    )
    return np.column_stack([np.cos(angle), np.sin(angle)])


def scales(rng, v):
    """Units between a thousandth and ten thousand."""
    return near(rng, drawn(rng, v.n, 5), v.which, 0.05) * 10.0 ** rng.uniform(-3, 4, size=5)


def tiles(rng, v):
    """Four shifted tilings of a line on which every look has a stretch."""
    at = rng.permutation(v.n)[v.which] * 4 + rng.uniform(1, 2.9, len(v.which))
    rows = [one_hot(((at + k) // 4).astype(int), v.n + 1) for k in range(4)]
    return np.hstack(rows)


def noisy_one_hot(rng, v):
    return one_hot(v.which, v.n) + 0.06 * rng.normal(size=(len(v.which), v.n))


def last_bit(rng, v):
    """Floats of which pairs differ in the last bit only."""
    value = np.repeat(rng.normal(size=(v.n + 1) // 2), 2).astype(np.float32)
    value[1::2] = np.nextafter(value[1::2], np.float32(np.inf))
    return value[: v.n][v.which][:, None]


def image(rng, v):
    """Six by six pixels: a sprite for each digit, and grain."""
    pixels = np.full((len(v.which), 6, 6, 1), 20.0)
    cells = rng.permutation(36)
    for i, cell in enumerate(cells[: int(np.ceil(np.log2(v.n)))]):
        pixels[:, cell // 6, cell % 6, 0] += 150.0 * (v.which >> i & 1)
    return np.clip(pixels + 5 * rng.normal(size=pixels.shape), 0, 255).astype(np.uint8)


def jitter(rng, v):
    """Eight by eight pixels in colour: a sprite that is drawn a pixel off now and then."""
    sprites = rng.integers(0, 256, size=(v.n, 6, 6, 3))
    pixels = np.zeros((len(v.which), 8, 8, 3), np.uint8)
    off = rng.choice(3, p=[0.25, 0.5, 0.25], size=(len(v.which), 2))
    for i, which in enumerate(v.which):
        pixels[i, off[i, 0] : off[i, 0] + 6, off[i, 1] : off[i, 1] + 6] = sprites[which]
    return pixels


def helix(rng, v):
    """Stretches of a helix that touch nowhere."""
    at = rng.permutation(v.n)[v.which] + rng.uniform(0, 0.8, len(v.which))
    return np.column_stack([np.cos(at), np.sin(at), 0.3 * at])


WAYS = [
    number,
    described,
    mixed,
    multi,
    clock,
    randomised,
    walk,
    heavy,
    bits,
    echo,
    echo_whole,
    turned,
    guises,
    overlapping,
    circle,
    scales,
    tiles,
    noisy_one_hot,
    last_bit,
    image,
    jitter,
    helix,
]
FIRST_OF_DOORS, WAYS_OF_DOORS = 10000, [number, described, scales, noisy_one_hot, image, circle]


# --- ways of paying, acting and ending -----------------------------------------------------------


def paid(how, rewards, rng):
    """The same rewards in other units, with costs, or with noise."""
    spread = np.std(rewards) or 1.0
    return {
        "plain": lambda: rewards,
        "huge": lambda: 1e6 * rewards,
        "tiny": lambda: 1e-6 * rewards,
        "cost": lambda: rewards - 0.01,
        "far": lambda: rewards + 1000.0,
        "noise": lambda: rewards + 0.2 * spread * rng.normal(size=len(rewards)),
        "float": lambda: rewards.astype(np.float32).astype(float),
        "loud": lambda: rewards + spread * rng.normal(size=len(rewards)),
    }[how]()


def actor(how, states, n_actions, rng):
    """(state, action before, episode) -> odds of actions."""
    best = {state: int(rng.integers(n_actions)) for state in states}
    even, one = np.full(n_actions, 1 / n_actions), np.eye(n_actions)
    shy = set(rng.permutation(len(states))[: max(1, len(states) // 8)].tolist())
    index = {state: i for i, state in enumerate(states)}
    barred = {
        state: (1 - one[best[state]]) / (n_actions - 1) for state in states if index[state] in shy
    }
    return {
        "uniform": lambda s, before, e: even,
        "greedy": lambda s, before, e: 0.3 * even + 0.7 * one[best[s]],
        "never": lambda s, before, e: barred.get(s, even),
        "again": lambda s, before, e: even if before is None else 0.4 * even + 0.6 * one[before],
        "favourite": lambda s, before, e: 0.4 * even + 0.6 * one[e % n_actions],
        "last seldom": lambda s, before, e: (
            0.97 * np.append(np.full(n_actions - 1, 1 / (n_actions - 1)), 0) + 0.03 * one[-1]
        ),
    }[how]


def collected(model, starts, odds, size, longest, rng):
    states, actions, rewards, lengths, ends = [], [], [], [], []
    sums = {
        state: [np.cumsum([p for p, _, _ in row]) for row in rows] for state, rows in model.items()
    }
    while len(actions) < size:
        state, n, before = starts[rng.integers(len(starts))], 0, None
        states.append(state)
        while n < longest and not isinstance(state, str):
            before = int(
                np.searchsorted(
                    np.cumsum(odds(state, before, len(lengths))),
                    rng.random() * (1 - 1e-9),
                    side="right",
                )
            )
            cumulated = sums[state][before]
            which = int(
                np.searchsorted(cumulated, rng.random() * cumulated[-1] * (1 - 1e-9), side="right")
            )
            _, state, reward = model[state][before][which]
            states.append(state)
            actions.append(before)
            rewards.append(reward)
            n += 1
        lengths.append(n)
        ends.append(isinstance(state, str))
    return states, np.array(actions), np.array(rewards, float), np.array(lengths), np.array(ends)


def as_task(model, names, visits):
    """The model as tables; what is taken is what was taken."""
    number = {name: i for i, name in enumerate(names)}
    k, n_actions = len(names), visits.shape[1]
    move, reward = np.zeros((k, n_actions, k)), np.zeros((k, n_actions, k))
    for state, rows in model.items():
        for a, row in enumerate(rows):
            for p, after, paid_ in row:
                move[number[state], a, number[after]] += p
                reward[number[state], a, number[after]] += p * paid_
    reward = np.divide(reward, move, out=np.zeros_like(reward), where=move > 0)
    ends = np.array([isinstance(name, str) for name in names])
    return latent.Task(move, reward, np.full(k, 1 / k), visits, ends)


def instance(number_):
    """Facts and arrays of one instance."""
    rng = np.random.default_rng([number_, 0x77696C64])
    doors = number_ >= FIRST_OF_DOORS
    tasks = DOORS if doors else TASKS
    family = list(tasks)[number_ % len(tasks)]
    world = tasks[family](rng)
    model = explore(world.starts, lambda x: [] if isinstance(x, str) else world.rows(x))
    inner = sorted(state for state in model if not isinstance(state, str))
    names = inner + sorted(state for state in model if isinstance(state, str))
    n_actions = len(model[inner[0]])
    shown = {name: world.seen(name) if not isinstance(name, str) else name for name in names}
    way = (
        (number, described, guises)[rng.integers(3)]
        if world.plain
        else WAYS[rng.integers(len(WAYS))]
    )
    pay = (
        "plain"
        if world.plain
        else str(
            rng.choice(
                ["plain", "plain", "plain", "huge", "tiny", "cost", "far", "noise", "float", "loud"]
            )
        )
    )
    acts = str(
        rng.choice(
            [
                "uniform",
                "uniform",
                "uniform",
                "greedy",
                "never",
                "again",
                "favourite",
                "last seldom",
            ]
        )
    )
    ending = str(rng.choice(["own", "blank", "as before", "as at first"]))
    if doors:
        way, pay, acts, ending = (
            WAYS_OF_DOORS[rng.integers(len(WAYS_OF_DOORS))],
            "plain",
            "uniform",
            "own",
        )
    size = int(10 ** (rng.uniform(3.7, 4.3) if world.plain else rng.uniform(2.7, 4.3)))
    longest = (
        world.longest if world.plain else int(rng.choice([world.longest, world.longest, 10, 1000]))
    )
    anywhere = bool(rng.integers(2)) and not world.plain
    starts = inner if anywhere else world.starts
    odds = actor(
        acts, sorted(set(shown.values()) - {n for n in names if isinstance(n, str)}), n_actions, rng
    )
    states, actions, rewards, lengths, ends = collected(
        model, starts, lambda s, before, e: odds(shown[s], before, e), size, longest, rng
    )

    # truth
    at = np.delete(np.arange(len(states)), np.cumsum(lengths + 1) - 1)
    of = {name: i for i, name in enumerate(names)}
    rows = np.array([of[state] for state in states])
    visits = np.zeros((len(names), n_actions))
    np.add.at(visits, (rows[at], actions), 1)
    task, present = as_task(model, names, visits), np.unique(rows)
    every = as_task(model, names, np.ones_like(visits))
    whole, _ = latent.minimise(restricted(every, present))
    seen_looks = {look: i for i, look in enumerate(sorted({shown[n] for n in inner}))}
    seen = np.array([seen_looks.get(shown[n], len(seen_looks) + i) for i, n in enumerate(names)])
    pooled = np.zeros((seen.max() + 1, n_actions))
    np.add.at(pooled, seen, visits)
    told, one_answer = latent.minimise(
        restricted(
            latent.Task(task.move, task.reward, task.start, pooled[seen], task.ends), present
        )
    )
    pairs = np.unique(np.stack([seen[present], whole[present]]), axis=1)
    markov = len(np.unique(pairs[0])) == pairs.shape[1]
    truth = np.unique(told[rows], return_inverse=True)[1].astype(np.int32)
    walks = latent.Walks(rows, actions, rewards, lengths, ends)
    nats = latent.weakest_pair(truth, walks, n_actions) if truth.max() < 100 else None

    # what is seen
    looks, which = np.unique(seen[rows], return_inverse=True)
    last = np.cumsum(lengths + 1) - 1
    first = np.concatenate([[0], last[:-1] + 1])
    over = last[ends]
    if ending == "as before":
        which[over] = which[over - 1]
    if ending == "as at first":
        which[over] = which[first[rng.integers(len(first), size=len(over))]]
    inner_places = sorted(seen_looks)
    low = np.min(inner_places, axis=0)
    places = np.array(
        [
            inner_places[i] if i < len(inner_places) else low - 3 - (i - len(inner_places))
            for i in looks
        ],
        float,
    )
    step = np.concatenate([np.arange(n + 1) for n in lengths])
    action_before, reward_before = np.zeros(len(rows), int), np.zeros(len(rows))
    action_before[at + 1], reward_before[at + 1] = actions, rewards
    view = SimpleNamespace(
        which=which,
        n=len(looks),
        places=places,
        step=step,
        action_before=action_before,
        reward_before=reward_before,
        episode=np.repeat(np.arange(len(lengths)), lengths + 1),
        episodes=len(lengths),
        n_actions=n_actions,
    )
    observations = way(rng, view)
    instance.looks = which  # for whoever looks closer
    if ending == "blank":
        observations[over] = 0
    if observations.dtype == np.float64:
        observations = observations.astype(np.float32)
    facts = {
        "number": number_,
        "family": family,
        "dimensions": int(np.prod(observations.shape[1:])),
        "markov": bool(markov),
        "decided": bool(one_answer and same_partition(whole[present], told[present])),
        "latent_states": int(truth.max()) + 1,
        "observations": len(looks),
        "actions": n_actions,
        "transitions": len(actions),
        "episodes": len(lengths),
        "weakest_pair_nats": nats,
        "parameters": {
            "way": way.__name__,
            "pay": pay,
            "acts": acts,
            "ending": ending,
            "anywhere": anywhere,
            "longest": longest,
        },
    }
    if world.plain and not markov:
        trap = SimpleNamespace(
            task=latent.Task(
                every.move,
                every.reward,
                np.bincount(rows[first], minlength=len(names)) / len(first),
                every.policy,
                every.ends,
            ),
            seen=seen,
        )
        facts["parameters"]["hidden_nats"] = hidden_nats(trap, walks)
    return facts, {
        "observations": observations,
        "actions": actions,
        "rewards": paid(pay, rewards, rng),
        "episode_lengths": lengths,
        "terminated": ends,
        "truncated": ~ends,
        "n_actions": np.int64(n_actions),
        "latent_states": truth,
    }


if __name__ == "__main__":
    sys.exit(command_line(__doc__, [*TASKS, *DOORS], instance))
