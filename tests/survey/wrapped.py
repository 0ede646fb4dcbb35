"""Tasks around tasks: noise, sticky actions, clocks, stacks, and players who are not random."""

import numpy as np
from shows import box
from truth import explore


class Task:
    """What the tasks of worlds.py share: they have outcomes(key). Most have many short episodes,
    which the minari package takes minutes to write."""

    plain = True

    def begin(self, rng):
        self.rng = rng

    def space(self, observations):
        return box(observations)

    def model(self, keys):
        return explore(keys, self.outcomes)


class Wrapped(Task):
    """A task around another one."""

    def __init__(self, name, transitions, task):
        self.name, self.transitions, self.task = name, transitions, task
        self.limit, self.n_actions = task.limit, task.n_actions
        if hasattr(task, "choose"):
            self.choose = task.choose

    def begin(self, rng):
        self.rng = rng
        self.task.begin(rng)

    def reset(self):
        self.task.reset()

    def step(self, action):
        return self.task.step(action)

    def observe(self):
        return self.task.observe()

    def key(self):
        return self.task.key()

    def outcomes(self, key):
        return self.task.outcomes(key)


class Looks(Wrapped):
    """One-hot vectors of states with noise, as wide as it says; the end has one of its own."""

    def __init__(self, name, transitions, task, noise):
        super().__init__(name, transitions, task)
        self.noise = noise

    def begin(self, rng):
        super().begin(rng)
        states = self.model(task_starts(self.task))
        self.numbers = {key: i for i, key in enumerate(sorted(states))}

    def observe(self):
        look = np.zeros(len(self.numbers) + 1, np.float32)
        look[self.numbers.get(self.task.key(), -1)] = 1
        return (look + self.noise * self.rng.normal(size=len(look))).astype(np.float32)


def task_starts(task):
    """Where episodes begin, as far as two hundred of them tell."""
    found = []
    for _ in range(200):
        task.reset()
        found.append(task.key())
    return list(dict.fromkeys(found))


class Sticky(Wrapped):
    """One time in four the last action is done again. The last is shown, too, or is not."""

    def __init__(self, name, transitions, task, shown):
        super().__init__(name, transitions, task)
        self.shown = shown

    def reset(self):
        self.task.reset()
        self.last = 0

    def step(self, action):
        self.last = self.last if self.rng.random() < 0.25 else action
        return self.task.step(self.last)

    def observe(self):
        look = self.task.observe()
        return np.append(np.ravel(look), self.last) if self.shown else look

    def key(self):
        return self.task.key(), self.last

    def outcomes(self, key):
        rows = self.task.outcomes(key[0])

        def done(action, share):
            return [
                (share * p, None if after is None else (after, action), r)
                for p, after, r in rows[action]
            ]

        return [done(action, 0.75) + done(key[1], 0.25) for action in range(self.n_actions)]


class Clocked(Wrapped):
    """The time limit is part of the task: episodes end there as if they had terminated. The clock
    is shown, or is not."""

    def __init__(self, name, transitions, task, limit, shown):
        super().__init__(name, transitions, task)
        self.stop, self.shown, self.limit = limit, shown, limit + 1

    def reset(self):
        self.task.reset()
        self.time = 0

    def step(self, action):
        reward, terminated = self.task.step(action)
        self.time += 1
        return reward, terminated or self.time == self.stop

    def observe(self):
        look = self.task.observe()
        return np.append(np.ravel(look), self.time).astype(np.int64) if self.shown else look

    def key(self):
        return self.task.key(), self.time

    def outcomes(self, key):
        time = key[1] + 1
        return [
            [
                (p, None if after is None or time == self.stop else (after, time), r)
                for p, after, r in row
            ]
            for row in self.task.outcomes(key[0])
        ]


class Stacked(Wrapped):
    """The last two observations as one. Its states are still the task's."""

    def reset(self):
        self.task.reset()
        self.before = self.now = self.task.observe()

    def step(self, action):
        self.before = self.now
        outcome = self.task.step(action)
        self.now = self.task.observe()
        return outcome

    def observe(self):
        return np.stack([self.before, self.now])


class Played(Wrapped):
    """Actions that are not uniform: mostly the best (greedy), or mostly the last again (habit)."""

    def __init__(self, name, transitions, task, how):
        super().__init__(name, transitions, task)
        self.choose = getattr(self, how)

    def begin(self, rng):
        super().begin(rng)
        if self.choose == self.greedy:
            self.best = best_actions(self.model(task_starts(self.task)))
        self.last = 0

    def model(self, keys):
        return self.task.model(keys)

    def greedy(self, rng):
        return int(rng.integers(self.n_actions)) if rng.random() < 0.3 else self.best[self.key()]

    def habit(self, rng):
        if rng.random() < 0.3:
            self.last = int(rng.integers(self.n_actions))
        return self.last


def best_actions(model, gamma=0.97):
    """What pays most in each state, by value iteration."""
    value = dict.fromkeys(model, 0.0)
    value[None] = 0.0
    for _ in range(200):
        q = {
            state: [sum(p * (r + gamma * value[after]) for p, after, r in row) for row in rows]
            for state, rows in model.items()
        }
        value = {state: max(row) for state, row in q.items()} | {None: 0.0}
    return {state: int(np.argmax(row)) for state, row in q.items()}
