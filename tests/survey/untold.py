"""Tasks that are too large to enumerate: what psifold says of them is recorded, not judged."""

import gymnasium as gym
import numpy as np
from shows import box


class Classic:
    """Cart pole and the like: observations are real numbers, the truth is unknown."""

    def __init__(self, name, transitions, env_id):
        self.name, self.transitions = name, transitions
        self.env = gym.make(env_id).unwrapped
        self.limit = gym.spec(env_id).max_episode_steps
        self.n_actions = int(self.env.action_space.n)

    def begin(self, rng):
        self.env.reset(seed=int(rng.integers(2**31)))

    def reset(self):
        self.look, _ = self.env.reset()

    def step(self, action):
        self.look, reward, terminated, _, _ = self.env.step(action)
        return float(reward), bool(terminated)

    def observe(self):
        return np.asarray(self.look, np.float32)

    def space(self, observations):
        return box(observations)


class MinAtar:
    """A small arcade game as it comes, with sticky actions and ramping difficulty: the truth is
    unknown, and the last action, which is hidden, matters."""

    limit = 1000
    n_actions = 6

    def __init__(self, name, transitions, game):
        from minatar import Environment

        self.name, self.transitions = name, transitions
        self.env = Environment(game)

    def begin(self, rng):
        self.env.seed(int(rng.integers(2**31)))

    def reset(self):
        self.env.reset()

    def step(self, action):
        reward, terminated = self.env.act(action)
        return float(reward), bool(terminated)

    def observe(self):
        return self.env.state().astype(np.uint8)

    def space(self, observations):
        return box(observations)
