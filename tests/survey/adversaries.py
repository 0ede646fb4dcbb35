"""Tasks that tempt a program to be wrong and certain: those of which something differs little,
rarely, late or never, and those that tempt by who acts or by what is paid. Each family takes a
random generator and a number that counts its instances, and returns a Trap.
"""

import latent
import numpy as np
from families import finish, garden, room, table
from traps import Trap, in_guises, paid_with, pick, shift, small, some_size, uniform_start

# What differs little, rarely, late, or never


def far(rng, variant):
    """Two corridors that are alike but for what waits at their ends."""
    n, slip = int(rng.integers(4, 21)), pick(rng, 0.0, 0.0, 0.05, 0.2)
    ends = variant % 2
    task = table(2 * n + ends, 2, [0.3, 0.7])
    task.start[:] = 0
    task.start[[0, n]] = 0.5
    for lane in range(2):
        for i in range(n):
            back, on = lane * n + max(i - 1, 0), lane * n + i + 1
            if i == n - 1:
                on = 2 * n if ends else int(rng.choice([0, n]))
            task.move[lane * n + i, 0, back] += 1
            task.move[lane * n + i, 1, on] += 1 - slip
            task.move[lane * n + i, 1, lane * n + i] += slip
    if not ends:  # the same way out of both
        task.move[n - 1, 1] = 0
        task.move[2 * n - 1, 1] = 0
        task.move[[n - 1, 2 * n - 1], 1, 0] = task.move[[n - 1, 2 * n - 1], 1, n] = 0.5
    odds = pick(rng, (1.0, 0.0), (0.7, 0.3), (0.55, 0.45), (0.9, 1.0))
    task.reward[n - 1, 1], task.reward[2 * n - 1, 1] = odds
    task.coins = True
    if ends:
        task.ends[-1] = True
    task = finish(task)
    return Trap(task, parameters={"length": n, "slip": slip, "odds": odds}, size=some_size(rng))


def close(rng, variant):
    """Two states that differ by 2 to 5 % in the odds of the same two successors, and in nothing
    else."""
    k = int(rng.integers(4, 7))
    task = garden(rng, k, 2, terminal=False)
    apart = float(rng.uniform(0.02, 0.05))
    u, v = rng.choice(np.arange(2, k), 2, replace=False)
    task.reward[1] = task.reward[0] = task.reward[0, :, :1]
    p = float(rng.uniform(0.3, 0.7))
    task.move[[0, 1]] = 0
    task.move[:2, :, u], task.move[:2, :, v] = p, 1 - p
    task.move[1, :, u] += apart
    task.move[1, :, v] -= apart
    task.policy[:] = 0.5
    size = (2000, 10000, 40000, 100000)[variant % 4]
    return Trap(task, parameters={"apart": apart}, size=size)


def odd_guise(rng, variant):
    """States in guises, one of which differs a little, in one action."""
    task, of = in_guises(rng, small(rng), int(rng.integers(2, 5)))
    apart = float(rng.uniform(0.02, 0.15))
    while True:
        s = int(rng.integers(len(of)))
        a = int(rng.integers(task.policy.shape[1]))
        if not task.ends[s] and shift(rng, task, s, a, apart):
            break
    return Trap(task, parameters={"apart": apart}, size=some_size(rng))


def guises(rng, _):
    """States in guises that differ in nothing."""
    task, of = in_guises(rng, small(rng), int(rng.integers(2, 7)))
    return Trap(task, parameters={"guises": len(of)}, size=some_size(rng))


def certain_guises(rng, _):
    """The same where nothing is left to chance but the guise."""
    task, of = in_guises(
        rng, small(rng, successors=(1, 1), terminal=False), int(rng.integers(2, 7))
    )
    return Trap(task, parameters={"guises": len(of)}, size=some_size(rng))


def seldom(rng, variant):
    """Guises that differ under an action only that is taken in 0.1 to 1 % of the steps."""
    successors = (1, 1) if variant % 2 else (1, 3)
    task, _of = in_guises(rng, small(rng, 3, 6, successors=successors), int(rng.integers(2, 4)))
    share = float(10 ** rng.uniform(-3, -2))
    a = task.policy.shape[1] - 1
    task.policy[:, :-1] *= (1 - share) / task.policy[:, :-1].sum(1, keepdims=True)
    task.policy[:, -1] = share
    s = int(rng.choice(np.flatnonzero(~task.ends)))
    if variant % 3 == 0:
        task.reward[s, a] += 1
    else:
        shift(rng, task, s, a, float(task.move[s, a].max()) - 0.01)
    return Trap(task, parameters={"share": share}, size=some_size(rng))


def never(rng, variant):
    """Guises that differ under an action only that is never taken, there or anywhere; or in
    nothing."""
    task, of = in_guises(rng, small(rng, 3, 6, successors=(1, 1)), int(rng.integers(2, 4)))
    s, a = int(rng.choice(np.flatnonzero(~task.ends))), task.policy.shape[1] - 1
    where = pick(rng, "there", "everywhere", "in its state")
    which = {"there": [s], "everywhere": slice(None), "in its state": of == of[s]}[where]
    if variant % 3:
        task.reward[s, a] += 1
    task.policy[which, a] = 0
    task.policy /= task.policy.sum(1, keepdims=True)
    return Trap(task, parameters={"where": where, "differs": variant % 3 > 0}, size=some_size(rng))


def short(rng, _):
    """Episodes of one to five steps."""
    task, of = in_guises(rng, uniform_start(small(rng, 3, 6)), int(rng.integers(1, 3)))
    return Trap(
        task,
        parameters={"guises": len(of)},
        size=pick(rng, 1000, 5000, 20000),
        length=int(rng.integers(1, 6)),
    )


def trapped(rng, variant):
    """Parts that are never left, and seen rarely: absorbing states that pay, or do not."""
    task = small(rng, 4, 8, terminal=False)
    k = len(task.ends)
    n = int(rng.integers(1, 4))
    task.move[:n] = 0
    for s in range(n):
        task.move[s, :, s] = 1
        task.reward[s] = pick(rng, 0.0, 0.0, 1.0)
    task.start[:n] = 0
    task.start = task.start / task.start.sum() if task.start.sum() else np.eye(k)[-1]
    return Trap(
        task, parameters={"absorbing": n}, size=some_size(rng), length=pick(rng, 10, 50, 200)
    )


def ending(rng, variant):
    """Every reward is the same; guises differ by how likely it ends, or do not."""
    task = small(rng, 3, 5, terminal=True)
    task.reward[:] = pick(rng, 0.0, 1.0)
    task, _of = in_guises(rng, task, 2)
    end = int(np.flatnonzero(task.ends)[0])
    apart = 0.0
    if variant % 2:
        s, apart = int(rng.choice(np.flatnonzero(~task.ends))), float(rng.uniform(0.01, 0.1))
        task.move[s] *= 1 - apart
        task.move[s, :, end] += apart
    return Trap(task, parameters={"apart": apart}, size=some_size(rng))


def many(rng, variant):
    """Hundreds of states with a few visits each."""
    k, actions = int(rng.integers(100, 501)), int(rng.integers(2, 4))
    task = table(k, actions)
    for s in range(k):
        for a in range(actions):
            n = 1 if variant % 2 else int(rng.integers(1, 3))
            to = rng.choice(k, n, replace=False)
            task.move[s, a, to] = rng.dirichlet(np.full(n, 3.0))
    task.reward[:] = np.where(
        rng.random((k, actions, 1)) < 0.1, rng.choice([1.0, 2.0], (k, actions, 1)), 0
    )
    if variant % 3 == 0:
        task, _ = in_guises(rng, task, np.where(rng.random(k) < 0.2, 2, 1))
    k = len(task.ends)
    return Trap(
        task,
        parameters={"observations": k},
        size=int(k * actions * rng.choice([2, 5, 20])),
        length=pick(rng, 20, 200),
    )


def mazes(rng, variant):
    """The same maze twice; or the second is another in one cell."""
    wet = pick(rng, 0.0, 0.0, 0.1)
    task, corner = room(
        rng, *(int(x) for x in rng.integers(3, 6, 2)), wet, bool(rng.random() < 0.5)
    )
    k = len(corner)
    twice = table(2 * k, 4)
    for i in range(2):
        here = slice(i * k, i * k + k)
        twice.move[here, :, here], twice.reward[here, :, here] = task.move, task.reward
        twice.ends[here] = task.ends
        twice.start[here] = task.start / 2
    apart = 0.0
    if variant % 2:
        s, a = k + int(rng.choice(np.flatnonzero(~task.ends))), int(rng.integers(4))
        apart = pick(rng, 1.0, 0.5, 0.1)
        to = int(rng.choice(np.flatnonzero(~task.ends))) + k
        twice.move[s, a] *= 1 - apart
        twice.move[s, a, to] += apart
    return Trap(twice, parameters={"slip": wet, "apart": apart}, size=some_size(rng))


def copies(rng, variant):
    """The same task two or three times; nothing leads from one to the other."""
    task = small(
        rng,
        3,
        7,
        terminal=False,
        values=(0.3, 0.5, 0.7),
        share=0.6,
        successors=(1, 1 + variant % 3),
    )
    k, n = len(task.ends), int(rng.integers(2, 4))
    several = table(n * k, task.policy.shape[1])
    for i in range(n):
        here = slice(i * k, i * k + k)
        several.move[here, :, here], several.reward[here, :, here] = task.move, task.reward
        several.policy[here], several.start[here] = task.policy, task.start / n
    several.coins = True
    return Trap(several, parameters={"copies": n}, size=some_size(rng))


def leak(rng, variant):
    """Hardly anything is left to chance: once in a thousand steps one slips, anywhere."""
    task = small(rng, 4, 8, successors=(1, 1), terminal=False)
    slip = float(10 ** rng.uniform(-3.5, -2))
    task.move = (1 - slip) * task.move + slip / len(task.ends)
    task, _of = in_guises(rng, task, int(rng.integers(1, 4)))
    return Trap(task, parameters={"slip": slip}, size=some_size(rng))


def levers(rng, variant):
    """Very many actions, most of which do the same, or nothing; some are never taken."""
    k, actions = int(rng.integers(4, 8)), int(rng.integers(30, 121))
    task = garden(rng, k, 3, terminal=False)
    kind = rng.integers(0, 3, actions)
    kind[:3] = np.arange(3)
    wide = latent.Task(
        task.move[:, kind],
        task.reward[:, kind],
        task.start,
        rng.dirichlet(np.full(actions, 1.0), k),
        task.ends,
    )
    wide, _of = in_guises(rng, wide, pick(rng, 1, 2))
    if variant % 2:
        unused = rng.random(actions) < 0.3
        unused[:3] = False
        wide.policy[:, unused] = 0
        wide.policy /= wide.policy.sum(1, keepdims=True)
        if variant % 4 == 1:
            wide.reward[0, np.flatnonzero(unused)[:1]] = 5.0
    return Trap(wide, parameters={"actions": actions}, size=pick(rng, 10000, 30000, 100000))


# Who acts


def shifting(rng, variant):
    """Who acts changes with time, with the episode, with the last action or reward: the task does
    not."""
    task, _ = in_guises(rng, small(rng), int(rng.integers(1, 3)))
    k, actions = task.policy.shape
    one, other = (rng.dirichlet(np.full(actions, 1.0), k) + 0.03 for _ in range(2))
    how = ("time", "episode", "repeats", "reward")[variant % 4]

    def choose(t, episode, state, before, paid):
        w = {
            "time": np.full(len(state), min(t / 30, 1.0)),
            "episode": episode,
            "repeats": 0.5 + 0 * paid,
            "reward": (paid > 0).astype(float),
        }[how][:, None]
        odds = (1 - w) * one[state] + w * other[state]
        if how == "repeats" and t > 0:
            odds = 0.1 * odds + np.eye(actions)[before]
        return odds / odds.sum(1, keepdims=True)

    return Trap(task, parameters={"how": how}, size=some_size(rng), choose=choose)


# Rewards


def heavy(rng, variant):
    """Rewards with heavy tails around means that differ between states, not between guises."""
    step = float(rng.uniform(0.5, 2))
    task, _of = in_guises(
        rng, small(rng, 3, 6, values=step * np.array([-1.0, 1.0, 2.0])), int(rng.integers(1, 3))
    )
    freedom = (1.5, 2.2, 3.0, 1.0)[variant % 4]
    skewed = bool(rng.random() < 0.5) and freedom > 2

    def noise(rng, walks):
        n = len(walks.rewards)
        if skewed:
            return np.exp(rng.standard_normal(n)) - np.exp(0.5)
        return rng.standard_t(freedom, n)

    return Trap(
        task,
        parameters={"degrees_of_freedom": freedom, "lognormal": skewed, "means_apart": step},
        size=some_size(rng),
        pay=paid_with(noise),
    )


def uneven(rng, variant):
    """Noise of a standard deviation of its own for every guise and action, with the same mean."""
    task, _of = in_guises(rng, small(rng, 3, 6, values=(-1.0, 1.0, 2.0)), int(rng.integers(1, 4)))
    sd = np.exp(rng.uniform(np.log(0.01), np.log(1.5), task.policy.shape))

    def noise(rng, walks):
        return sd[walks.states[walks.steps()], walks.actions] * rng.standard_normal(
            len(walks.rewards)
        )

    return Trap(
        task,
        parameters={"sd": [float(sd.min()), float(sd.max())]},
        size=some_size(rng),
        pay=paid_with(noise),
    )


def rounded(rng, variant):
    """Noise, then rounded up or down so that the mean stays; the sd may differ between guises."""
    task, _of = in_guises(rng, small(rng, 3, 6, values=(-1.0, 1.0, 2.0)), int(rng.integers(1, 3)))
    grid = pick(rng, 1.0, 0.5, 0.1)
    sd = np.full(task.policy.shape, float(rng.uniform(0.1, 1)))
    if variant % 2:
        sd = np.exp(rng.uniform(np.log(0.1), 0, task.policy.shape))

    def pay(rng, walks):
        at = sd[walks.states[walks.steps()], walks.actions]
        x = (walks.rewards + at * rng.standard_normal(len(at))) / grid
        return grid * (np.floor(x) + (rng.random(len(x)) < x - np.floor(x)))

    return Trap(
        task,
        parameters={"grid": grid, "sd": [float(sd.min()), float(sd.max())]},
        size=some_size(rng),
        pay=pay,
    )


def nearly(rng, variant):
    """Rewards of nearly the same size, in whatever unit, with or without noise that is smaller."""
    task, _of = in_guises(
        rng, small(rng, 3, 6, values=(1.0, 2.0, 3.0), share=0.6), int(rng.integers(1, 3))
    )
    apart, unit = pick(rng, 1e-3, 1e-5, 1.0), float(10 ** rng.uniform(-9, 9))
    sd = pick(rng, 0.0, 0.0, 0.3) * apart

    def pay(rng, walks):
        return unit * (1 + apart * walks.rewards + sd * rng.standard_normal(len(walks.rewards)))

    return Trap(
        task, parameters={"apart": apart, "unit": unit, "sd": sd}, size=some_size(rng), pay=pay
    )


def gambles(rng, variant):
    """Some guises pay 0 or 2 by the toss of a coin where others pay 1: the same, on average."""
    task, _of = in_guises(rng, small(rng, 3, 6, values=(1.0,), share=0.5), 2)
    gamble = (rng.random(task.policy.shape) < 0.5) & ~task.ends[:, None]

    def pay(rng, walks):
        toss = gamble[walks.states[walks.steps()], walks.actions]
        return np.where(toss, walks.rewards * 2 * rng.integers(0, 2, len(toss)), walks.rewards)

    return Trap(task, parameters={"gambles": int(gamble.sum())}, size=some_size(rng), pay=pay)


def arrival(rng, variant):
    """What is paid depends on where one arrives: guises differ by that only, or in nothing."""
    task = small(rng, 3, 6, successors=(2, 3))
    task.reward = np.where(task.move > 0, rng.choice([0.0, 0.0, 1.0, 2.0], task.reward.shape), 0)
    finish(task)
    task, _of = in_guises(rng, task, 2)
    if variant % 2:
        s = int(rng.choice(np.flatnonzero(~task.ends)))
        a = int(rng.integers(task.policy.shape[1]))
        to = np.flatnonzero(task.move[s, a])
        task.reward[s, a, rng.choice(to)] += 1
    return Trap(task, size=some_size(rng))
