"""The families of the survey. Each takes a random generator and a number that counts its instances,
and returns a Plan; instance n of the survey is of family n modulo their number."""

from dataclasses import dataclass

import latent
import looks
import numpy as np


@dataclass
class Plan:
    task: latent.Task
    look: object
    parameters: dict
    size: int = 10000  # transitions, at least
    length: int = 50  # of the longest episodes
    episodes: int | None = None  # this many, whatever the size
    fewest_states: int = 3  # draw again below
    fewest_seen: int = 20  # draw again if a state is seen less often
    enough: float = 12.0  # draw again if the weakest pair of states has fewer nats
    same_look: tuple | None = None  # two states that cannot be told apart: no Markov task


def some_size(rng):
    return int(rng.choice([5000, 10000, 10000, 10000, 10000, 40000]))


def table(k, actions, likes=None):
    """An empty task: nothing moves yet, actions are equally likely or as liked."""
    policy = np.tile(np.full(actions, 1 / actions) if likes is None else likes, (k, 1))
    return latent.Task(
        np.zeros((k, actions, k)),
        np.zeros((k, actions, k)),
        np.full(k, 1 / k),
        policy,
        np.zeros(k, bool),
    )


def finish(task):
    """Terminal states lead nowhere, and no episode starts there."""
    task.move[task.ends] = 0
    task.move[task.ends, :, np.flatnonzero(task.ends)[:1]] = 1
    task.reward[task.ends] = 0
    task.start = np.where(task.ends, 0, task.start)
    task.start = task.start / task.start.sum()
    return task


def garden(
    rng, k, actions, successors=(1, 2), terminal=None, values=(-1.0, 0.5, 1.0, 2.0), share=0.3
):
    """A sparse random graph: one to a few successors, most rewards nothing, a few first states;
    every draw is repeated until no state is too many. With `terminal`, the last state is one."""
    terminal = rng.random() < 0.5 if terminal is None else terminal
    while True:
        task = table(k, actions, rng.dirichlet(np.full(actions, 8.0)))
        if rng.random() < 0.5:
            task.start[rng.permutation(k)[max(3, k // 3) :]] = 0
        task.ends[-1] = terminal
        for s in range(k):
            for a in range(actions):
                n = min(int(rng.integers(successors[0], successors[1] + 1)), k - 1)
                to = rng.choice(k - terminal, n, replace=False)
                odds = rng.dirichlet(np.full(n, 1.5))
                task.move[s, a, to] = (odds + 0.1) / (odds + 0.1).sum()
                if terminal and rng.random() < 0.2:
                    end = rng.uniform(0.1, 0.5)
                    task.move[s, a] *= 1 - end
                    task.move[s, a, -1] += end
                if rng.random() < share:
                    task.reward[s, a] = rng.choice(values)
        finish(task)
        labels, one_answer = latent.minimise(task)
        if one_answer and labels.min() >= 0 and labels.max() == k - 1:
            return task


def some_garden(rng, low=5, high=12, **options):
    k, actions = int(rng.integers(low, high + 1)), int(rng.integers(2, 5))
    return garden(rng, k, actions, **options)


def some_blobs(rng, task, **options):
    return looks.blobs(rng, len(task.ends), int(rng.choice([2, 3, 5, 8])), **options)


def line(rng, k, slip, end):
    """Left and right on a line; the last step right pays 1 and terminates, starts again, or
    stays."""
    right = rng.uniform(0.5, 0.65)
    task = table(k + (end == "terminates"), 2, [1 - right, right])
    after = {"terminates": k, "starts again": 0, "stays": k - 1}[end]
    for s in range(k):
        left, further = max(s - 1, 0), s + 1 if s < k - 1 else after
        for a, (there, elsewhere) in enumerate([(left, further), (further, left)]):
            task.move[s, a, there] += 1 - slip
            task.move[s, a, elsewhere] += slip
    task.reward[k - 1, :, after] = 1
    if end == "stays":
        task.reward[k - 1, 0] = 0
    if end == "terminates":
        task.ends[-1] = True
    return finish(task)


def chain(rng, variant):
    k = int(rng.integers(10, 41))
    slip = float(rng.uniform(0.05, 0.25)) if variant % 2 else 0.0
    end = str(rng.choice(["terminates", "starts again", "stays"]))
    task = line(rng, k, slip, end)
    look, seen = some_blobs(rng, task)
    return Plan(task, look, {"length": k, "slip": slip, "end": end, **seen}, some_size(rng))


def room(rng, width, height, slip, terminal):
    """A room with walls; who reaches the goal gets 1 and is done, or is put anywhere after that.
    Returns the task and the cells of its states."""
    while True:
        free = rng.random((width, height)) > 0.15
        corner = np.argwhere(free)
        if len(corner) < 6:
            continue
        number = np.full((width, height), -1)
        number[free] = np.arange(len(corner))
        goal = int(rng.integers(len(corner)))
        task = table(len(corner), 4)
        heading = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])
        for s, here in enumerate(corner):
            for a in range(4):
                for turn, odds in ((0, 1 - slip), (1, slip / 2), (3, slip / 2)):
                    x, y = here + heading[(a + turn) % 4]
                    inside = 0 <= x < width and 0 <= y < height and free[x, y]
                    task.move[s, a, number[x, y] if inside else s] += odds
        if terminal:
            task.ends[goal] = True
            task.reward[:, :, goal] = 1
        else:
            task.move[goal] = 1 / len(corner)
            task.reward[goal] = 1
        finish(task)
        if latent.reachable(task).all():
            return task, corner


def grid(rng, variant):
    width, height = (int(x) for x in rng.integers(3, 7, 2))
    slip, terminal = float(rng.uniform(0, 0.25)), bool(rng.random() < 0.5)
    task, corner = room(rng, width, height, slip, terminal)
    look, seen = some_blobs(rng, task) if variant % 2 else looks.cells(corner.astype(float))
    return Plan(
        task,
        look,
        {
            "width": width,
            "height": height,
            "slip": slip,
            "terminal": terminal,
            "shown_as": "blobs" if variant % 2 else "cells",
            **seen,
        },
        int(rng.choice([10000, 20000])),
    )


def lock(rng, variant):
    n, actions = int(rng.integers(5, 13)), int(rng.integers(2, 5))
    works = float(rng.uniform(0.8, 0.95)) if rng.random() < 0.5 else 1.0
    right = rng.integers(0, actions, n)
    liked = max(float(rng.uniform(0.6, 0.8)), 0.04 ** (1 / (n - 1))) / works
    liked = min(liked, 0.9)
    ends = variant % 2
    task = table(n + ends, actions)
    for s in range(n):
        task.policy[s] = (1 - liked) / (actions - 1)
        task.policy[s, right[s]] = liked
        task.move[s, :, 0] = 1
        task.move[s, right[s], 0] = 0
        opened = s + 1 if s < n - 1 else (n if ends else 0)
        task.move[s, right[s], opened] += works
        task.move[s, right[s], s] += 1 - works
    task.reward[n - 1, right[n - 1], n if ends else 0] = 1
    task.ends[n:] = True
    finish(task)
    look, seen = some_blobs(rng, task)
    return Plan(
        task,
        look,
        {
            "length": n,
            "actions": actions,
            "works": works,
            "liked": liked,
            "terminal": bool(ends),
            **seen,
        },
        some_size(rng),
    )


def nuisance(rng, variant):
    task = some_garden(rng, 5, 10)
    look, seen = looks.blobs(rng, len(task.ends), 3)
    memory = float(rng.uniform(0.7, 0.98)) if variant % 2 else 0.0
    return Plan(
        task,
        looks.with_nuisance(look, 30, memory),
        {**seen, "dimensions": 33, "nuisance_memory": memory},
        some_size(rng),
    )


def successors(rng, _):
    task = some_garden(rng, 6, 14, successors=(5, 5))
    look, seen = some_blobs(rng, task)
    return Plan(task, look, seen, int(rng.choice([10000, 20000, 40000])))


def odds(rng, variant):
    """Two states that agree in everything but the odds of the same two successors."""
    k = int(rng.integers(4, 7))
    task = garden(rng, k, 2, terminal=False)
    one, other = 0, 1
    u, v = rng.choice(np.arange(2, k), 2, replace=False)
    task.reward[other] = task.reward[one] = task.reward[one, :, :1]
    task.move[[one, other]] = 0
    task.move[one, :, u], task.move[one, :, v] = 0.425, 0.575
    task.move[other, :, u], task.move[other, :, v] = 0.575, 0.425
    task.policy[:] = 0.5
    look, seen = some_blobs(rng, task)
    size = (40000, 20000, 40000, 10000)[variant % 4]
    return Plan(task, look, seen, size, fewest_states=k, enough=12.0 if size > 10000 else -np.inf)


def rare(rng, variant):
    """A state with about a thousandth of the observations, entered from anywhere or from one
    state."""
    k = int(rng.integers(6, 11))
    task = garden(rng, k, 2, terminal=False)
    single = variant % 2
    task.move[:, :, 0] = 0
    empty = task.move.sum(2) == 0
    task.move[empty, 1 + rng.integers(0, k - 1, empty.sum())] = 1
    task.move /= task.move.sum(2, keepdims=True)
    leak = 0.001 * k if single else 0.001
    whence = slice(1, 2) if single else slice(1, k)
    task.move[whence] *= 1 - leak
    task.move[whence, :, 0] = leak
    task.start[0] = 0
    task.start /= task.start.sum()
    look, seen = some_blobs(rng, task)
    return Plan(
        task,
        look,
        {"leak": leak, "from": "one" if single else "anywhere", **seen},
        40000,
        fewest_states=k,
    )


def policy(rng, _):
    task = some_garden(rng)
    logits = rng.normal(0, 1.3, task.policy.shape)
    task.policy = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    look, seen = some_blobs(rng, task)
    return Plan(task, look, seen, some_size(rng))


def untaken(rng, _):
    """A quarter of the pairs of state and action are never taken."""
    task = garden(rng, int(rng.integers(5, 11)), int(rng.integers(3, 6)))
    never = rng.random(task.policy.shape) < 0.25
    never[never.all(1)] = False
    task.policy = np.where(never, 0, task.policy)
    task.policy /= task.policy.sum(1, keepdims=True)
    look, seen = some_blobs(rng, task)
    return Plan(
        task, look, {"pairs_never_taken": int(never[~task.ends].sum()), **seen}, some_size(rng)
    )


def noisy(rng, variant):
    sd, step = (0.1, 0.3, 0.5, 1.0)[variant % 4], float(rng.uniform(0.5, 1.0))
    task = some_garden(rng, 4, 8, values=step * np.array([-1, 1, 2]))
    task.noise = np.full(task.policy.shape, sd)
    look, seen = some_blobs(rng, task)
    return Plan(task, look, {"sd": sd, "means_apart": step, **seen}, some_size(rng))


def bernoulli(rng, _):
    task = some_garden(rng, 4, 8, values=(0.3, 0.5, 0.7, 0.9), share=0.7)
    task.coins = True
    look, seen = some_blobs(rng, task)
    return Plan(task, look, seen, some_size(rng))


def variance(rng, _):
    """States in two guises whose rewards differ in nothing but their variance: one state in
    truth."""
    task = some_garden(rng, 4, 7, values=(-1.0, 1.0, 2.0))
    k, twins = len(task.ends), int(rng.integers(1, 4))
    of = np.concatenate(
        [np.arange(k), rng.choice(np.flatnonzero(~task.ends), twins, replace=False)]
    )
    share = np.ones(k + twins)
    for i in range(k, k + twins):
        share[i] = rng.uniform(0.4, 0.6)
        share[of[i]] -= share[i]
    double = latent.Task(
        task.move[of][:, :, of] * share,
        task.reward[of][:, :, of],
        task.start[of] * share,
        task.policy[of],
        task.ends[of],
    )
    double.noise = np.full(double.policy.shape, 0.1)
    double.noise[k:] = rng.uniform(0.4, 0.8)
    look, seen = some_blobs(rng, double)
    return Plan(
        double,
        look,
        {"guises": k + twins, "sd": [0.1, float(double.noise[-1, 0])], **seen},
        some_size(rng),
    )


def many_looks(rng, _):
    task = some_garden(rng)
    look, seen = some_blobs(rng, task, per_state=int(rng.integers(3, 9)))
    return Plan(task, look, seen, some_size(rng))


def scales(rng, _):
    task = some_garden(rng)
    d = int(rng.integers(3, 9))
    look, seen = looks.blobs(rng, len(task.ends), d)
    factors = 10 ** rng.uniform(-3, 3, d)
    return Plan(
        task, looks.scaled(look, factors), {**seen, "factors": factors.tolist()}, some_size(rng)
    )


def few(rng, _):
    task = some_garden(rng, 4, 8, terminal=False)
    look, seen = some_blobs(rng, task)
    return Plan(task, look, seen, length=int(rng.integers(50, 101)), episodes=100)


def long(rng, _):
    task = some_garden(rng, terminal=False)
    look, seen = some_blobs(rng, task)
    return Plan(task, look, seen, length=2000, episodes=10)


def termination(rng, variant):
    """Every reward is the same; only that it ends tells states apart."""
    value, kind = float(rng.choice([-1, 0, 1])), ("garden", "room", "line")[variant % 3]
    if kind == "room":
        task, _ = room(
            rng, *(int(x) for x in rng.integers(3, 6, 2)), float(rng.uniform(0, 0.2)), True
        )
    elif kind == "line":
        task = line(rng, int(rng.integers(6, 16)), float(rng.uniform(0, 0.2)), "terminates")
    else:
        task = some_garden(rng, 4, 8, terminal=True)
    task.reward[:] = value
    look, seen = some_blobs(rng, task)
    return Plan(
        task, look, {"reward": value, "task": kind, **seen}, some_size(rng), fewest_states=4
    )


def duplicates(rng, _):
    task = some_garden(rng)
    per_state = int(rng.choice([1, 4, 12, 40]))
    look, seen = looks.codes(rng, len(task.ends), 5, 4, per_state, int(rng.integers(0, 3)))
    return Plan(task, look, seen, some_size(rng))


def turned(rng, _):
    task = some_garden(rng, 5, 10)
    look, seen = looks.blobs(rng, len(task.ends), 3)
    idle = int(rng.integers(5, 21))
    look = looks.rotated(looks.with_nuisance(look, idle), 3 + idle, rng)
    return Plan(task, look, {**seen, "dimensions": 3 + idle}, some_size(rng))


def curves(rng, variant):
    task = some_garden(rng, 4, 6 if variant % 2 else 9)
    look, seen = (looks.spirals if variant % 2 else looks.rings)(rng, len(task.ends))
    idle = int(rng.integers(0, 3))
    return Plan(
        task, looks.with_nuisance(look, idle), {**seen, "dimensions": 2 + idle}, some_size(rng)
    )


def widths(rng, _):
    task = some_garden(rng)
    look, seen = some_blobs(rng, task, per_state=int(rng.integers(1, 4)), unequal=True)
    return Plan(task, look, seen, some_size(rng))


def wide(rng, _):
    task = some_garden(rng)
    look, seen = looks.blobs(rng, len(task.ends), 100, per_state=int(rng.integers(1, 4)))
    return Plan(task, look, seen, some_size(rng))


def hidden(rng, _):
    """Two states that differ look the same: what is seen is not Markov, and nobody can be
    certain."""
    task = some_garden(rng, 5, 9)
    k = len(task.ends)
    one, other = rng.choice(k - 1, 2, replace=False)
    look, seen = some_blobs(rng, task)
    as_seen = np.arange(k)
    as_seen[other] = one
    return Plan(
        task,
        lambda rng, states, lengths: look(rng, as_seen[states], lengths),
        seen,
        some_size(rng),
        same_look=(int(one), int(other)),
    )


def constant(rng, _):
    """Nothing to predict: one state."""
    task = some_garden(rng, terminal=False)
    task.reward[:] = value = float(rng.choice([0, 1, -0.5]))
    look, seen = some_blobs(rng, task)
    return Plan(
        task, look, {"reward": value, **seen}, some_size(rng), fewest_states=1, enough=-np.inf
    )


def rewards64(rng, variant):
    """Many states, each often seen: every action moves them round, none has more ways in than
    out."""
    k = int(rng.integers(150, 251))
    values = np.arange(64.0) if variant % 2 else np.cumsum(rng.uniform(0.5, 1.5, 64))
    task = table(k, 2)
    for a in range(2):
        task.move[np.arange(k), a, rng.permutation(k)] = 1
        task.reward[:, a] = rng.choice(values, (k, 1))
    look, seen = looks.blobs(rng, k, int(rng.choice([5, 8, 16])))
    return Plan(
        task, look, {"values": "whole" if variant % 2 else "uneven", **seen}, 40000, fewest_states=k
    )


def actions50(rng, _):
    task = garden(rng, int(rng.integers(4, 8)), 50)
    look, seen = some_blobs(rng, task)
    return Plan(task, look, seen, int(rng.choice([20000, 40000])))


FAMILIES = {
    "chain": chain,
    "grid": grid,
    "lock": lock,
    "nuisance": nuisance,
    "successors": successors,
    "odds": odds,
    "rare": rare,
    "policy": policy,
    "untaken": untaken,
    "noisy": noisy,
    "bernoulli": bernoulli,
    "variance": variance,
    "looks": many_looks,
    "scales": scales,
    "few": few,
    "long": long,
    "termination": termination,
    "duplicates": duplicates,
    "rotated": turned,
    "curves": curves,
    "widths": widths,
    "wide": wide,
    "hidden": hidden,
    "constant": constant,
    "rewards64": rewards64,
    "actions50": actions50,
}
