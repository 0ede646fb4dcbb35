"""What a task that tempts is made of: its model, how it is seen, who acts, what is paid."""

from dataclasses import dataclass, field

import latent
import numpy as np
from families import garden, table


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
    """Every state but terminal ones in so many guises (a number, or one for each state), which come
    in shares of their own whatever led to them. Returns the task, and the state that each guise is
    of."""
    k = len(task.ends)
    copies = np.where(task.ends, 1, np.broadcast_to(copies, k))
    of = np.repeat(np.arange(k), copies)
    share = np.concatenate([rng.dirichlet(np.full(n, 5.0)) for n in copies])
    more = latent.Task(
        task.move[of][:, :, of] * share,
        task.reward[of][:, :, of],
        task.start[of] * share,
        task.policy[of],
        task.ends[of],
    )
    if task.noise is not None:
        more.noise = task.noise[of]
    more.coins = task.coins
    return more, of


def shift(rng, task, s, a, by):
    """Moves so much probability of (s, a) from one next state to another that it leads to, or,
    where there is only one, to any. Returns whether that was possible."""
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
    """States (s, h): step(h, s, a, t) gives the probabilities of the next h. Rewards and moves of s
    are those of task[h] (a list)."""
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
    """Walks as latent.walk has them, or under whoever chooses: choose(t, episode, state, action,
    reward before), arrays over episodes, returns (episodes, A)."""
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


def paid_with(noise):
    return lambda rng, walks: walks.rewards + noise(rng, walks)
