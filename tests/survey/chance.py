"""MO-Gymnasium and bsuite: environments whose random generator is replaced by one that takes every
branch."""

import importlib

import mo_gymnasium
import numpy as np
from wrapped import Task


class Chance:
    """A random number between 0 and 1 that is only ever compared."""

    def __init__(self, dice):
        self.dice = dice

    def __lt__(self, p):
        return self.dice.branch([p, 1 - p]) == 0

    def __gt__(self, p):
        return self.dice.branch([1 - p, p]) == 0


class Dice:
    """Stands for a random generator, and takes every branch in turn: all_of(step) is the list of
    (probability, what step returned). What has a size is scenery, and no part of the state."""

    def branch(self, probabilities):
        if self.at == len(self.path):
            self.path.append([0, probabilities])
        choice, probabilities = self.path[self.at]
        self.at += 1
        self.weight *= probabilities[choice]
        return choice

    def random(self):
        return Chance(self)

    rand = random

    def randn(self):
        return 0.0  # its mean: blocks ask for no more

    def binomial(self, _n, p, size=None):
        return self.branch([1 - p, p]) if size is None else 0

    def integers(self, low, high=None):
        low, high = (0, low) if high is None else (low, high)
        return low + self.branch([1 / (high - low)] * (high - low))

    randint = integers

    def all_of(self, step):
        self.path, found = [], []
        while True:
            self.at, self.weight = 0, 1.0
            outcome = step()
            if self.weight > 0:
                found.append((self.weight, outcome))
            while self.path and self.path[-1][0] == len(self.path[-1][1]) - 1:
                self.path.pop()
            if not self.path:
                return found
            self.path[-1][0] += 1


def frozen(value):
    """The value as part of a key."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return tuple(frozen(part) for part in value)
    return value.item() if isinstance(value, np.generic) else value


def thawed(value, like):
    """The part of a key as the environment has it."""
    if isinstance(like, np.ndarray):
        return np.array(value, like.dtype)
    return list(value) if isinstance(like, list) else value


class Diced(Task):
    """An environment whose state is a few attributes, and whose chance comes from one generator."""

    def key(self):
        return tuple(frozen(getattr(self.env, field)) for field in self.fields)

    def observe(self):
        return np.asarray(self.look)

    def outcomes(self, key):
        def tried(action):
            for field, value in zip(self.fields, key, strict=True):
                setattr(self.env, field, thawed(value, self.like[field]))
            reward, terminated = self.step(action)
            return (None if terminated else self.key()), reward

        dice, generator = Dice(), getattr(self.env, self.generator, None)
        setattr(self.env, self.generator, dice)
        rows = [
            [(p, after, reward) for p, (after, reward) in dice.all_of(lambda a=action: tried(a))]
            for action in range(self.n_actions)
        ]
        setattr(self.env, self.generator, generator)
        return rows

    def begin(self, rng):
        self.seed(int(rng.integers(2**31)))
        self.reset()
        self.like = {field: getattr(self.env, field) for field in self.fields}


class Objectives(Diced):
    """MO-Gymnasium with its rewards weighed into one."""

    generator = "_np_random"
    states = {
        "deep-sea-treasure-v0": ["current_state"],
        "deep-sea-treasure-concave-v0": ["current_state"],
        "resource-gathering-v0": ["current_pos", "has_gold", "has_gem"],
        "fruit-tree-v0": ["current_state", "terminal"],
        "fishwood-v0": ["_state", "_timestep"],
        "breakable-bottles-v0": [
            "location",
            "bottles_carrying",
            "bottles_delivered",
            "bottles_dropped",
        ],
    }

    def __init__(self, name, transitions, env_id, weights):
        self.name, self.transitions, self.fields = name, transitions, self.states[env_id]
        self.env = mo_gymnasium.make(env_id).unwrapped
        self.limit = (
            1000 if env_id == "fishwood-v0" else 100
        )  # that one ends by itself after 200 steps
        self.weights = np.array(weights, float)
        self.n_actions = int(self.env.action_space.n)

    def seed(self, seed):
        self.env.reset(seed=seed)

    def reset(self):
        self.look, _ = self.env.reset()

    def step(self, action):
        self.look, reward, terminated, _, _ = self.env.step(action)
        if hasattr(
            self.env, "bottles_dropped"
        ):  # counted without end, where only whether any was matters
            self.env.bottles_dropped = [min(count, 1) for count in self.env.bottles_dropped]
        return round(float(self.weights @ np.asarray(reward, float)), 6), bool(terminated)

    def observe(self):
        if isinstance(self.look, dict):
            return np.hstack([self.look[field] for field in self.fields]).astype(np.int64)
        return super().observe()


class Bsuite(Diced):
    """An environment of bsuite, as dm_env has it."""

    generator, limit = "_rng", 1000
    states = {
        "Catch": ["_ball_x", "_ball_y", "_paddle_x"],
        "DeepSea": ["_row", "_column"],
        "UmbrellaChain": ["_timestep", "_need_umbrella", "_has_umbrella"],
        "DiscountingChain": ["_timestep", "_context"],
        "MemoryChain": ["_timestep", "_context", "_query"],
    }

    def __init__(self, name, transitions, kind, **options):
        module, kind = kind.split(".")
        self.name, self.transitions, self.fields = name, transitions, self.states[kind]
        self.env = getattr(importlib.import_module("bsuite.environments." + module), kind)(
            **options
        )
        self.n_actions = self.env.action_spec().num_values
        self.noisy_rewards = options.get("deterministic") is False

    def seed(self, seed):
        self.env._rng = np.random.RandomState(seed)

    def reset(self):
        self.look = self.env.reset().observation

    def step(self, action):
        self.env._reset_next_step = False  # Catch would begin anew by itself
        stepped = self.env._step(action)
        self.look = stepped.observation
        return float(stepped.reward), stepped.last()
