"""Tasks that tempt a program to be wrong and certain. Each family takes a random generator and a number that
counts its instances, and returns a Trap; instance n of the survey is of family n modulo their number.

A Trap has a finite model of everything there is, hidden or not; what is observed is a function of its
states. Most are shown as indices, for tables; `Trap.vectors` asks for vectors in so many dimensions.
"""

from dataclasses import dataclass, field

import latent
import numpy as np
from families import finish, garden, room, table


@dataclass
class Trap:
    task: latent.Task
    seen: np.ndarray | None = None  # (K,) what is observed of each state; None: the state
    parameters: dict = field(default_factory=dict)
    size: int = 10000  # transitions, at least
    length: int = 50  # of the longest episodes
    episodes: int | None = None  # this many, whatever the size
    choose: object = None  # who acts, if not task.policy: see walk
    pay: object = None  # the rewards as they are seen: (rng, walks) -> (N,)
    blur: object = None  # what is observed instead: (rng, observed, walks) -> (rows,)
    markov: bool | None = None  # None: if what is observed tells the block of the state
    vectors: int | None = None


# Parts


def pick(rng, *values):
    return values[int(rng.integers(len(values)))]


def some_size(rng):
    return pick(rng, 3000, 10000, 10000, 30000, 100000)


def uniform_start(task):
    task.start = np.where(task.ends, 0.0, 1.0)
    task.start /= task.start.sum()
    return task


def in_guises(rng, task, copies):
    """Every state but terminal ones in so many guises (a number, or one for each state), which come in
    shares of their own whatever led to them. Returns the task, and the state that each guise is of."""
    k = len(task.ends)
    copies = np.where(task.ends, 1, np.broadcast_to(copies, k))
    of = np.repeat(np.arange(k), copies)
    share = np.concatenate([rng.dirichlet(np.full(n, 5.0)) for n in copies])
    more = latent.Task(task.move[of][:, :, of] * share, task.reward[of][:, :, of],
                       task.start[of] * share, task.policy[of], task.ends[of])
    if task.noise is not None:
        more.noise = task.noise[of]
    more.coins = task.coins
    return more, of


def shift(rng, task, s, a, by):
    """Moves so much probability of (s, a) from one next state to another that it leads to, or, where there
    is only one, to any. Returns whether that was possible."""
    row = task.move[s, a]
    from_ = int(row.argmax())
    others = np.flatnonzero((row > 0) & (np.arange(len(row)) != from_))
    if len(others) == 0:
        others = np.flatnonzero(~task.ends & (np.arange(len(row)) != from_))
    to = int(rng.choice(others))
    if row[from_] <= by:
        return False
    row[from_] -= by
    row[to] += by
    return True


def product(task, hidden, step):
    """States (s, h): step(h, s, a, t) gives the probabilities of the next h. Rewards and moves of s are
    those of task[h] (a list)."""
    k, actions = task[0].policy.shape
    n = hidden
    both = table(k * n, actions)
    for h in range(n):
        for s in range(k):
            for a in range(actions):
                for t in np.flatnonzero(task[h].move[s, a]):
                    then = step(h, s, a, t)
                    for g in np.flatnonzero(then):
                        both.move[s * n + h, a, t * n + g] += task[h].move[s, a, t] * then[g]
                        both.reward[s * n + h, a, t * n + g] = task[h].reward[s, a, t]
    both.policy = np.repeat(task[0].policy, n, axis=0)
    both.ends = np.repeat(task[0].ends, n)
    both.start = np.repeat(task[0].start, n) / n
    return both


def small(rng, low=3, high=7, **options):
    return garden(rng, int(rng.integers(low, high + 1)), int(rng.integers(2, 4)), **options)


def walk(trap, rng):
    """Walks as latent.walk has them, or under whoever chooses: choose(t, episode, state, action, reward
    before), arrays over episodes, returns (episodes, A)."""
    task = trap.task
    if trap.choose is None:
        return latent.walk(task, rng, trap.size, trap.length, trap.episodes)
    n, length = trap.episodes or -(-trap.size // trap.length), trap.length
    first, step = np.cumsum(task.start), np.cumsum(task.move, -1)
    states, actions = np.zeros((n, length + 1), np.int64), np.zeros((n, length), np.int64)
    rewards, lengths, alive = np.zeros((n, length)), np.full(n, length), np.ones(n, bool)
    states[:, 0] = latent.pick(rng, np.tile(first, (n, 1)))
    before, paid = np.full(n, -1), np.zeros(n)
    for t in range(length):
        now = states[:, t]
        odds = trap.choose(t, np.arange(n) / n, now, before, paid)
        actions[:, t] = before = latent.pick(rng, np.cumsum(odds, 1))
        states[:, t + 1] = latent.pick(rng, step[now, before])
        rewards[:, t] = paid = task.reward[now, before, states[:, t + 1]]
        over = alive & task.ends[states[:, t + 1]]
        lengths[over] = t + 1
        alive &= ~over
    kept = np.arange(length + 1) <= lengths[:, None]
    return latent.Walks(states[kept], actions[kept[:, 1:]], rewards[kept[:, 1:]], lengths, ~alive)


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
    """Two states that differ by 2 to 5 % in the odds of the same two successors, and in nothing else."""
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
    task, of = in_guises(rng, small(rng, successors=(1, 1), terminal=False), int(rng.integers(2, 7)))
    return Trap(task, parameters={"guises": len(of)}, size=some_size(rng))


def seldom(rng, variant):
    """Guises that differ under an action only that is taken in 0.1 to 1 % of the steps."""
    successors = (1, 1) if variant % 2 else (1, 3)
    task, of = in_guises(rng, small(rng, 3, 6, successors=successors), int(rng.integers(2, 4)))
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
    """Guises that differ under an action only that is never taken, there or anywhere; or in nothing."""
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
    return Trap(task, parameters={"guises": len(of)}, size=pick(rng, 1000, 5000, 20000),
                length=int(rng.integers(1, 6)))


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
    return Trap(task, parameters={"absorbing": n}, size=some_size(rng), length=pick(rng, 10, 50, 200))


def ending(rng, variant):
    """Every reward is the same; guises differ by how likely it ends, or do not."""
    task = small(rng, 3, 5, terminal=True)
    task.reward[:] = pick(rng, 0.0, 1.0)
    task, of = in_guises(rng, task, 2)
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
    task.reward[:] = np.where(rng.random((k, actions, 1)) < 0.1, rng.choice([1.0, 2.0], (k, actions, 1)), 0)
    if variant % 3 == 0:
        task, _ = in_guises(rng, task, np.where(rng.random(k) < 0.2, 2, 1))
    k = len(task.ends)
    return Trap(task, parameters={"observations": k}, size=int(k * actions * rng.choice([2, 5, 20])),
                length=pick(rng, 20, 200))


def mazes(rng, variant):
    """The same maze twice; or the second is another in one cell."""
    wet = pick(rng, 0.0, 0.0, 0.1)
    task, corner = room(rng, *(int(x) for x in rng.integers(3, 6, 2)), wet, bool(rng.random() < 0.5))
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
    task = small(rng, 3, 7, terminal=False, values=(0.3, 0.5, 0.7), share=0.6, successors=(1, 1 + variant % 3))
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
    task, of = in_guises(rng, task, int(rng.integers(1, 4)))
    return Trap(task, parameters={"slip": slip}, size=some_size(rng))


def levers(rng, variant):
    """Very many actions, most of which do the same, or nothing; some are never taken."""
    k, actions = int(rng.integers(4, 8)), int(rng.integers(30, 121))
    task = garden(rng, k, 3, terminal=False)
    kind = rng.integers(0, 3, actions)
    kind[:3] = np.arange(3)
    wide = latent.Task(task.move[:, kind], task.reward[:, kind], task.start,
                       rng.dirichlet(np.full(actions, 1.0), k), task.ends)
    wide, of = in_guises(rng, wide, pick(rng, 1, 2))
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
    """Who acts changes with time, with the episode, with the last action or reward: the task does not."""
    task, _ = in_guises(rng, small(rng), int(rng.integers(1, 3)))
    k, actions = task.policy.shape
    one, other = (rng.dirichlet(np.full(actions, 1.0), k) + 0.03 for _ in range(2))
    how = ("time", "episode", "repeats", "reward")[variant % 4]

    def choose(t, episode, state, before, paid):
        w = {"time": np.full(len(state), min(t / 30, 1.0)), "episode": episode, "repeats": 0.5 + 0 * paid,
             "reward": (paid > 0).astype(float)}[how][:, None]
        odds = (1 - w) * one[state] + w * other[state]
        if how == "repeats" and t > 0:
            odds = 0.1 * odds + np.eye(actions)[before]
        return odds / odds.sum(1, keepdims=True)

    return Trap(task, parameters={"how": how}, size=some_size(rng), choose=choose)


# Rewards


def paid_with(noise):
    return lambda rng, walks: walks.rewards + noise(rng, walks)


def heavy(rng, variant):
    """Rewards with heavy tails around means that differ between states, not between guises."""
    step = float(rng.uniform(0.5, 2))
    task, of = in_guises(rng, small(rng, 3, 6, values=step * np.array([-1.0, 1.0, 2.0])), int(rng.integers(1, 3)))
    freedom = (1.5, 2.2, 3.0, 1.0)[variant % 4]
    skewed = bool(rng.random() < 0.5) and freedom > 2

    def noise(rng, walks):
        n = len(walks.rewards)
        if skewed:
            return np.exp(rng.standard_normal(n)) - np.exp(0.5)
        return rng.standard_t(freedom, n)

    return Trap(task, parameters={"degrees_of_freedom": freedom, "lognormal": skewed, "means_apart": step},
                size=some_size(rng), pay=paid_with(noise))


def uneven(rng, variant):
    """Noise of a standard deviation of its own for every guise and action, with the same mean."""
    task, of = in_guises(rng, small(rng, 3, 6, values=(-1.0, 1.0, 2.0)), int(rng.integers(1, 4)))
    sd = np.exp(rng.uniform(np.log(0.01), np.log(1.5), task.policy.shape))

    def noise(rng, walks):
        return sd[walks.states[walks.steps()], walks.actions] * rng.standard_normal(len(walks.rewards))

    return Trap(task, parameters={"sd": [float(sd.min()), float(sd.max())]}, size=some_size(rng), pay=paid_with(noise))


def rounded(rng, variant):
    """Noise, then rounded up or down so that the mean stays; the sd may differ between guises."""
    task, of = in_guises(rng, small(rng, 3, 6, values=(-1.0, 1.0, 2.0)), int(rng.integers(1, 3)))
    grid = pick(rng, 1.0, 0.5, 0.1)
    sd = np.full(task.policy.shape, float(rng.uniform(0.1, 1)))
    if variant % 2:
        sd = np.exp(rng.uniform(np.log(0.1), 0, task.policy.shape))

    def pay(rng, walks):
        at = sd[walks.states[walks.steps()], walks.actions]
        x = (walks.rewards + at * rng.standard_normal(len(at))) / grid
        return grid * (np.floor(x) + (rng.random(len(x)) < x - np.floor(x)))

    return Trap(task, parameters={"grid": grid, "sd": [float(sd.min()), float(sd.max())]}, size=some_size(rng), pay=pay)


def nearly(rng, variant):
    """Rewards of nearly the same size, in whatever unit, with or without noise that is smaller."""
    task, of = in_guises(rng, small(rng, 3, 6, values=(1.0, 2.0, 3.0), share=0.6), int(rng.integers(1, 3)))
    apart, unit = pick(rng, 1e-3, 1e-5, 1.0), float(10 ** rng.uniform(-9, 9))
    sd = pick(rng, 0.0, 0.0, 0.3) * apart

    def pay(rng, walks):
        return unit * (1 + apart * walks.rewards + sd * rng.standard_normal(len(walks.rewards)))

    return Trap(task, parameters={"apart": apart, "unit": unit, "sd": sd}, size=some_size(rng), pay=pay)


def gambles(rng, variant):
    """Some guises pay 0 or 2 by the toss of a coin where others pay 1: the same, on average."""
    task, of = in_guises(rng, small(rng, 3, 6, values=(1.0,), share=0.5), 2)
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
    task, of = in_guises(rng, task, 2)
    if variant % 2:
        s = int(rng.choice(np.flatnonzero(~task.ends)))
        a = int(rng.integers(task.policy.shape[1]))
        to = np.flatnonzero(task.move[s, a])
        task.reward[s, a, rng.choice(to)] += 1
    return Trap(task, size=some_size(rng))


# What is hidden


def aliased(rng, variant):
    """Two states that differ look the same, be one of them rare or not."""
    task = small(rng, 4, 8, successors=(1, 1) if variant % 2 else (1, 3))
    k = len(task.ends)
    inner = np.flatnonzero(~task.ends)
    one, other = rng.choice(inner, 2, replace=False)
    if variant % 3 == 0:
        task.move[:, :, other] *= 0.02
        lost = 1 - task.move.sum(2)
        task.move[:, :, one] += np.where(task.ends[:, None], 0, lost)
        task.start[other] = 0
        task.start /= task.start.sum()
    seen = np.arange(k)
    seen[other] = one
    return Trap(task, seen, size=some_size(rng))


def counter(rng, variant):
    """Every so many steps something is paid; how many are left is not seen."""
    n = int(rng.integers(2, 61))
    task = table(n, 2)
    for i in range(n):
        task.move[i, 0, (i + 1) % n] = 1
        task.move[i, 1, (i + 1) % n if variant % 2 else i] = 1
    task.reward[n - 1, 0] = 1
    if variant % 3 == 0:
        task.start = np.eye(n)[0]
    return Trap(task, np.zeros(n, int), {"period": n}, size=some_size(rng), length=pick(rng, 50, 200, 1000))


def rooms_and_counter(rng, variant):
    """A garden whose rewards come in every n-th step only."""
    task, n = small(rng, 3, 6, terminal=False, share=0.6), int(rng.integers(2, 13))
    silent = latent.Task(task.move, 0 * task.reward, task.start, task.policy, task.ends)
    both = product([task] + [silent] * (n - 1), n, lambda h, *_: np.eye(n)[(h + 1) % n])
    return Trap(both, np.repeat(np.arange(len(task.ends)), n), {"period": n}, size=some_size(rng))


def mixture(rng, variant):
    """Every episode is of one of two tasks, which look the same, and differ here or there."""
    task = small(rng, 3, 6, terminal=False, values=(1.0,), share=0.5)
    other = latent.Task(task.move.copy(), task.reward.copy(), task.start, task.policy, task.ends)
    task.coins = other.coins = True
    task.reward *= 0.5
    apart = pick(rng, 0.05, 0.1, 0.2, 0.5)
    other.reward = np.where(task.reward > 0, 0.5 + apart, 0)
    if variant % 2:
        other.reward = task.reward.copy()
        for a in range(task.policy.shape[1]):
            for s in range(len(task.ends)):
                shift(rng, other, s, a, min(apart, 0.9 * float(other.move[s, a].max())))
    both = product([task, other], 2, lambda h, *_: np.eye(2)[h])
    both.coins = True
    return Trap(both, np.repeat(np.arange(len(task.ends)), 2), {"apart": apart, "moves": variant % 2},
                size=some_size(rng), length=pick(rng, 10, 50, 200))


def weather(rng, variant):
    """A hidden weather that lasts changes how likely it is to be paid."""
    task = small(rng, 3, 6, terminal=False, values=(1.0,), share=0.6)
    apart, last = pick(rng, 0.05, 0.1, 0.2), pick(rng, 0.8, 0.95, 0.99)
    fair = latent.Task(task.move, task.reward * (0.5 + apart), task.start, task.policy, task.ends)
    foul = latent.Task(task.move, task.reward * (0.5 - apart), task.start, task.policy, task.ends)
    stay = np.array([[last, 1 - last], [1 - last, last]])
    both = product([fair, foul], 2, lambda h, *_: stay[h])
    both.coins = True
    return Trap(both, np.repeat(np.arange(len(task.ends)), 2), {"apart": apart, "lasts": last},
                size=some_size(rng), length=pick(rng, 50, 200))


def cue(rng, variant):
    """What is seen first tells what is paid at the end of a corridor, where nothing tells it any more."""
    n, sure = int(rng.integers(2, 16)), pick(rng, 1.0, 0.8, 0.6)
    task = table(2 + 2 * n + 1, 2)
    task.start = np.where(np.arange(2 * n + 3) < 2, 0.5, 0)
    for c in range(2):
        task.move[c, :, 2 + c * n] = 1
        for i in range(n):
            at = 2 + c * n + i
            task.move[at, 0, at + 1 if i < n - 1 else 2 * n + 2] = 1
            task.move[at, 1, at] = 1
        task.move[c, :, 2 + c * n] = 1
    task.reward[2 + n - 1, 0] = sure
    task.reward[2 + 2 * n - 1, 0] = 1 - sure
    task.coins = True
    task.ends[-1] = True
    if variant % 2:  # it starts again
        task.ends[-1] = False
        task.move[-1] = 0
        task.move[-1, :, :2] = 0.5
    else:
        finish(task)
    seen = np.concatenate([[0, 1], 2 + np.tile(np.arange(n), 2), [2 + n]])
    return Trap(task, seen, {"length": n, "sure": sure}, size=some_size(rng))


def toggle(rng, variant):
    """One action in one state throws a switch that nobody sees; elsewhere, something else happens then."""
    task = small(rng, 4, 8, terminal=False)
    other = latent.Task(task.move.copy(), task.reward.copy(), task.start, task.policy, task.ends)
    k = len(task.ends)
    s, at = rng.choice(k, 2, replace=False)
    if variant % 2:
        other.reward[s, 0] += 1
    else:
        shift(rng, other, s, 0, pick(rng, 0.1, 0.3))
    both = product([task, other], 2,
                   lambda h, x, a, _: np.eye(2)[1 - h] if x == at and a == 0 else np.eye(2)[h])
    return Trap(both, np.repeat(np.arange(k), 2), size=some_size(rng), length=pick(rng, 20, 100))


def sticky(rng, variant):
    """Now and then the last action is done again, whatever was chosen."""
    task = small(rng, 4, 8, terminal=False)
    k, actions = task.policy.shape
    again = pick(rng, 0.02, 0.1, 0.25)
    both = table(k * actions, actions)
    for s in range(k):
        for b in range(actions):
            for a in range(actions):
                for done, odds in ((a, 1 - again), (b, again)):
                    for t in np.flatnonzero(task.move[s, done]):
                        i = t * actions + done
                        p = odds * task.move[s, done, t]
                        both.move[s * actions + b, a, i] += p
                        both.reward[s * actions + b, a, i] = task.reward[s, done, t]
    both.policy = np.repeat(task.policy, actions, axis=0)
    both.start = np.repeat(task.start, actions) / actions
    return Trap(both, np.repeat(np.arange(k), actions), {"again": again}, size=some_size(rng))


def second(rng, variant):
    """In one state, what happens depends on the state before, too."""
    task = small(rng, 4, 8, terminal=False)
    k, actions = task.policy.shape
    s, apart = int(rng.integers(k)), pick(rng, 0.1, 0.3, 0.6)
    other = latent.Task(task.move.copy(), task.reward.copy(), task.start, task.policy, task.ends)
    for a in range(actions):
        shift(rng, other, s, a, min(apart, 0.9 * float(other.move[s, a].max())))
    came = rng.random(k) < 0.5
    came[:2] = [True, False]
    both = product([task, other], 2, lambda h, x, a, t: np.eye(2)[int(came[x])])
    return Trap(both, np.repeat(np.arange(k), 2), {"apart": apart}, size=some_size(rng))


def delayed(rng, variant):
    """What is earned is paid a step or two later; what is owed is seen, or not."""
    task = small(rng, 3, 5, terminal=False, values=(1.0,), share=0.4)
    delay = int(rng.integers(1, 4))
    k, actions = task.policy.shape
    n = 2**delay
    both = table(k * n, actions)
    for s in range(k):
        for owed in range(n):
            for a in range(actions):
                for t in np.flatnonzero(task.move[s, a]):
                    earned = int(task.reward[s, a, t] > 0)
                    i = t * n + (owed >> 1 | earned << delay - 1)
                    both.move[s * n + owed, a, i] += task.move[s, a, t]
                    both.reward[s * n + owed, a, i] = owed & 1
    both.policy = np.repeat(task.policy, n, axis=0)
    both.start = np.zeros(k * n)
    both.start[::n] = task.start
    seen = np.arange(k * n) if variant % 3 == 0 else np.repeat(np.arange(k), n)
    return Trap(both, seen, {"delay": delay, "shown": variant % 3 == 0}, size=some_size(rng))


def missing(rng, variant):
    """Now and then nothing is seen."""
    task = small(rng, 4, 8)
    share = pick(rng, 0.002, 0.02, 0.2)

    def blur(rng, observed, walks):
        gone = rng.random(len(observed)) < share
        return np.where(gone & ~task.ends[walks.states], len(task.ends), observed)

    return Trap(task, parameters={"share": share}, size=some_size(rng), blur=blur, markov=False)


def confused(rng, variant):
    """Now and then another state is seen than there is."""
    task = small(rng, 4, 8, terminal=False)
    share = pick(rng, 0.002, 0.02, 0.1)

    def blur(rng, observed, walks):
        wrong = rng.random(len(observed)) < share
        return np.where(wrong, rng.integers(0, len(task.ends), len(observed)), observed)

    return Trap(task, parameters={"share": share}, size=some_size(rng), blur=blur, markov=False)


def late(rng, variant):
    """What is seen is what was there a step before."""
    task = small(rng, 4, 8, terminal=False)

    def blur(rng, observed, walks):
        before = np.roll(observed, 1)
        first = np.cumsum(walks.lengths + 1) - walks.lengths - 1
        before[first] = observed[first]
        return before

    return Trap(task, size=some_size(rng), blur=blur, markov=False)


def lasting_noise(rng, variant):
    """Noise of rewards that remembers."""
    task = small(rng, 3, 6, terminal=False, values=(-1.0, 1.0, 2.0))
    memory, sd = pick(rng, 0.2, 0.5, 0.9, 0.99), float(rng.uniform(0.1, 1))
    from looks import autoregressive

    def noise(rng, walks):
        return sd * autoregressive(rng, walks.lengths - 1, 1, memory)[:, 0]

    return Trap(task, parameters={"memory": memory, "sd": sd}, size=some_size(rng), pay=paid_with(noise),
                length=pick(rng, 50, 200), markov=False)


def drift(rng, variant):
    """The task itself changes from the first episode to the last."""
    task = small(rng, 3, 6, terminal=False, values=(1.0,), share=0.6)
    by = pick(rng, 0.1, 0.3, 0.8)

    def pay(rng, walks):
        when = np.repeat(np.arange(len(walks.lengths)) / len(walks.lengths), walks.lengths)
        return (rng.random(len(when)) < walks.rewards * (0.5 + by * (when - 0.5))).astype(float)

    return Trap(task, parameters={"by": by}, size=some_size(rng), pay=pay, markov=False,
                length=pick(rng, 20, 100))


# What is seen and means nothing, or much


def parity(rng, variant):
    """Bits come one by one, all are seen; their parity is paid."""
    n = int(rng.integers(3, 8))
    number = {}
    for length in range(n + 1):
        for bits in range(2**length):
            number[length, bits] = len(number)
    task = table(len(number) + 1, 2)
    task.start = np.eye(len(number) + 1)[0]
    lucky = pick(rng, 0.5, 0.3)
    for (length, bits), i in number.items():
        if length < n:
            task.move[i, :, number[length + 1, 2 * bits + 1]] += lucky
            task.move[i, :, number[length + 1, 2 * bits]] += 1 - lucky
        else:
            task.move[i, :, -1] = 1
            odd = bin(bits).count("1") % 2
            task.reward[i, 0], task.reward[i, 1] = odd, 1 - odd
    task.ends[-1] = True
    finish(task)
    if variant % 2:  # half of what is paid is luck
        task.reward = 0.25 + 0.5 * task.reward
        task.coins = True
        finish(task)
    return Trap(task, parameters={"bits": n}, size=some_size(rng))


def clock(rng, variant):
    """Time is part of what is seen; it matters from some time on, or never."""
    task = small(rng, 3, 5, terminal=False)
    length = int(rng.integers(4, 21))
    k, actions = task.policy.shape
    when = int(rng.integers(2, length)) if variant % 2 else None
    both = table(k * (length + 1), actions)
    for t in range(length + 1):
        for s in range(k):
            then = min(t + 1, length) * k
            both.move[t * k + s, :, then : then + k] = task.move[s]
            both.reward[t * k + s, :, then : then + k] = task.reward[s]
            if when is not None and t >= when:
                both.reward[t * k + s] += 1
    both.policy = np.tile(task.policy, (length + 1, 1))
    both.start = np.concatenate([task.start, np.zeros(k * length)])
    return Trap(both, parameters={"length": length, "matters_from": when}, size=some_size(rng), length=length)


def nothing(rng, variant):
    """One thing is seen, and what follows is a throw of the dice."""
    task = table(2, 2)
    task.move[0, :, 0] = 1
    task.reward[0, 0], task.reward[0, 1] = 0.3, 0.6
    task.coins = True
    if variant % 2:
        task.move[0, :, 0], task.move[0, :, 1] = 0.9, 0.1
        task.ends[1] = True
    else:
        task.move[1, :, 0] = 1
        task.start = np.array([1.0, 0])
        return Trap(task, np.zeros(2, int), size=some_size(rng))
    return Trap(finish(task), size=some_size(rng))


def beside(rng, variant):
    """Something that means nothing goes its own way, or the way that actions send it."""
    task = small(rng, 3, 5)
    n = int(rng.integers(2, 6))
    law = rng.dirichlet(np.full(n, 0.7), (task.policy.shape[1], n))
    if variant % 2 == 0:
        law[:] = law[:1]
    both = product([task] * n, n, lambda h, s, a, t: law[a, h])
    return Trap(both, parameters={"beside": n}, size=some_size(rng))


FAMILIES = {
    one.__name__: one
    for one in (far, close, odd_guise, guises, certain_guises, seldom, never, short, trapped, ending, many, mazes, copies,
                leak, levers, shifting, heavy, uneven, rounded, nearly, gambles, arrival, aliased,
                counter, rooms_and_counter, mixture, weather, cue, toggle, sticky, second, delayed, missing,
                confused, late, lasting_noise, drift, parity, clock, nothing, beside)
}
