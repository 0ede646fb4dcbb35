"""Latent tasks as tables: their smallest truth, walks through them, and what the counts can tell.

States that must be told apart are found from the tables, not from data: the coarsest partition in
which states of one block agree, for every action that is ever taken, on the expected reward and on
the probabilities of the next block. Terminal states are a block of their own.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.special import gammaln

SAME = 1e-9


@dataclass
class Task:
    move: np.ndarray  # (K, A, K) probability of the next state
    reward: np.ndarray  # (K, A, K) mean reward of that step
    start: np.ndarray  # (K,)
    policy: np.ndarray  # (K, A)
    ends: np.ndarray  # (K,) is it terminal?
    noise: np.ndarray | None = None  # (K, A) standard deviation of rewards
    coins: bool = False  # rewards are 0 or 1, with the mean as probability

    def expected_reward(self):
        return (self.move * self.reward).sum(2)


def reachable(task):
    """Which states can be seen at all."""
    step = np.einsum("ka,kan->kn", task.policy, task.move) > 0
    step[task.ends] = False
    seen = task.start > 0
    while True:
        more = seen | step[seen].any(0)
        if (more == seen).all():
            return seen
        seen = more


def minimise(task):
    """The block of every state, -1 where it cannot be reached, and whether there is one answer
    only.

    A pair of state and action that is never taken says nothing. "May be the same" is then no
    equivalence in general; two states are held to differ if they differ even when everything that
    is linked by "may be the same" is one block, and there is one answer if what is left is
    transitive.
    """
    seen = reachable(task)
    expected = task.expected_reward()[seen]
    move = task.move[np.ix_(seen, np.ones(task.move.shape[1], bool), seen)]
    taken = task.policy[seen] > 0
    taken[task.ends[seen]] = False
    differ = task.ends[seen][:, None] != task.ends[seen][None, :]
    for a in range(taken.shape[1]):
        both = taken[:, None, a] & taken[None, :, a]
        differ |= both & (np.abs(expected[:, None, a] - expected[None, :, a]) > SAME)
    while True:
        n, block = connected_components(~differ, directed=False)
        more = differ.copy()
        member = np.eye(n)[block]
        for a in range(taken.shape[1]):
            row = move[:, a] @ member
            both = taken[:, None, a] & taken[None, :, a]
            more |= both & (np.abs(row[:, None] - row[None, :]).max(2) > SAME)
        if (more == differ).all():
            break
        differ = more
    one_answer = bool((differ == (block[:, None] != block[None, :])).all())
    labels = np.full(len(seen), -1, np.int32)
    labels[seen] = block
    return labels, one_answer


@dataclass
class Walks:
    """Episodes one after another, each with one state more than it has actions."""

    states: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    lengths: np.ndarray
    terminated: np.ndarray

    def steps(self):
        """Where in `states` every transition starts."""
        last = np.cumsum(self.lengths + 1) - 1
        return np.delete(np.arange(len(self.states)), last)


def walk(task, rng, size, length, episodes=None):
    """At least `size` transitions, or this many episodes, of at most `length` steps each."""
    parts, total, wanted = [], 0, episodes or -(-size // length)
    while not parts or (episodes is None and total < size):
        parts.append(walk_together(task, rng, wanted, length))
        total += parts[-1].lengths.sum()
        if episodes is None:
            mean = total / sum(len(part.lengths) for part in parts)
            wanted = max(1, int((size - total) / mean))
    return Walks(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in Walks.__dataclass_fields__
        )
    )


def pick(rng, cumulated):
    """One index per row of cumulated probabilities."""
    dice = rng.random((len(cumulated), 1)) * cumulated[:, -1:]
    return (dice >= cumulated).sum(1)


def walk_together(task, rng, n, length):
    first, act, step = (np.cumsum(x, -1) for x in (task.start, task.policy, task.move))
    states = np.zeros((n, length + 1), np.int64)
    actions = np.zeros((n, length), np.int64)
    rewards = np.zeros((n, length))
    lengths = np.full(n, length)
    states[:, 0] = pick(rng, np.tile(first, (n, 1)))
    alive = np.ones(n, bool)
    for t in range(length):
        now = states[:, t]
        actions[:, t] = pick(rng, act[now])
        states[:, t + 1] = pick(rng, step[now, actions[:, t]])
        rewards[:, t] = task.reward[now, actions[:, t], states[:, t + 1]]
        if task.noise is not None:
            rewards[:, t] += task.noise[now, actions[:, t]] * rng.standard_normal(n)
        if task.coins:
            rewards[:, t] = rng.random(n) < rewards[:, t]
        over = alive & task.ends[states[:, t + 1]]
        lengths[over] = t + 1
        alive &= ~over
    kept = np.arange(length + 1) <= lengths[:, None]
    return Walks(states[kept], actions[kept[:, 1:]], rewards[kept[:, 1:]], lengths, ~alive)


def dirichlet(counts):
    """Log-probability of counts (last axis) under a Dirichlet-multinomial, Jeffreys prior over the
    next states that occur: those that are NaN do not."""
    there = ~np.isnan(counts)
    n = np.where(there, counts, 0.0)
    half = 0.5 * there.sum(-1)
    each = np.where(there, gammaln(n + 0.5) - gammaln(0.5), 0.0)
    return (
        each.sum(-1) + gammaln(np.maximum(half, 0.5)) - gammaln(n.sum(-1) + np.maximum(half, 0.5))
    )


def tables(labels, walks, n_actions):
    """Counts (K, A, K), and per pair the number, mean and squared deviations of its rewards."""
    k, at = labels.max() + 1, walks.steps()
    pair = labels[at] * n_actions + walks.actions
    counts = np.zeros((k * n_actions, k))
    np.add.at(counts, (pair, labels[at + 1]), 1)
    visits = counts.sum(1)
    mean = np.bincount(pair, walks.rewards, k * n_actions) / np.maximum(visits, 1)
    spread = np.bincount(pair, (walks.rewards - mean[pair]) ** 2, k * n_actions)
    shape = (k, n_actions)
    return counts.reshape(*shape, k), visits.reshape(shape), mean.reshape(shape), spread.sum()


def pair_nats(labels, walks, n_actions):
    """(K, K): how much better two laws explain the steps out of two states than one law, in nats.

    Per action: next states (Dirichlet-multinomial, Jeffreys prior over those that follow either)
    and rewards (normal, one standard deviation for all, normal prior over the difference of means).
    The actions' sum or the best action alone, whichever is more: one action that differs is enough.
    """
    counts, visits, mean, spread = tables(labels, walks, n_actions)
    k = len(counts)
    sum_of, best_of = np.zeros((k, k)), np.full((k, k), -np.inf)
    prior = np.var(mean[visits > 0])
    noise = max(spread / max(visits.sum() - (visits > 0).sum(), 1), 1e-4 * prior)
    for a in range(n_actions):
        both = (visits[:, None, a] > 0) & (visits[None, :, a] > 0)
        nats = np.zeros((k, k))
        for i in range(k):
            pooled = counts[i, a] + counts[:, a]
            here = np.where(pooled > 0, counts[i, a], np.nan)
            there = np.where(pooled > 0, counts[:, a], np.nan)
            nats[i] = dirichlet(here) + dirichlet(there) - dirichlet(here + there)
        if prior > SAME:
            with np.errstate(divide="ignore"):
                doubt = noise * (1 / visits[:, None, a] + 1 / visits[None, :, a])
            doubt = np.where(both, doubt, np.inf)
            square = (mean[:, None, a] - mean[None, :, a]) ** 2
            with np.errstate(invalid="ignore"):
                nats += np.where(
                    both,
                    0.5 * (square / doubt - square / (doubt + prior) - np.log1p(prior / doubt)),
                    0.0,
                )
        nats = np.where(both, nats, 0.0)
        sum_of += nats
        best_of = np.maximum(best_of, nats)
    return np.maximum(sum_of, best_of)


def weakest_pair(labels, walks, n_actions):
    """The least of these over all pairs of states that were ever left: is there enough to see?"""
    nats = pair_nats(labels, walks, n_actions)
    left = np.unique(labels[walks.steps()])
    apart = nats[np.ix_(left, left)][~np.eye(len(left), dtype=bool)]
    return float(apart.min()) if apart.size else None


def memory_nats(looks, walks, n_actions):
    """How much better the next look is predicted if one knows, beside look and action, the look and
    action before: what gives a task away that is no Markov decision process as seen."""
    at = walks.steps()
    first = np.cumsum(walks.lengths) - walks.lengths
    later = np.setdiff1d(np.arange(len(at)), first)
    pair = looks[at] * n_actions + walks.actions
    n = int(looks.max()) + 1
    total = 0.0
    for p in np.unique(pair[later]):
        chosen = later[pair[later] == p]
        counts = np.zeros((n * n_actions, n))
        np.add.at(counts, (pair[chosen - 1], looks[at[chosen] + 1]), 1)
        counts = counts[counts.sum(1) > 0][:, counts.sum(0) > 0]
        total += dirichlet(counts).sum() - dirichlet(counts.sum(0))
    return float(total)
