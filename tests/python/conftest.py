import os
import signal

# the real HDF5 of h5py and psifold's own in one process, in either order of loading
os.environ.setdefault("HDF5_USE_FILE_LOCKING", "FALSE")

import gymnasium as gym
import numpy as np
import pytest

import psifold

# Ctrl-C is tried; whoever starts tests in the background of a shell has it ignored
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def columns():
    return psifold.generate("column-world", episodes=300, seed=0)


@pytest.fixture(scope="session")
def run(columns):
    return psifold.cluster(columns, seed=0)


@pytest.fixture(scope="session")
def points():
    return psifold.generate("point-column-world", episodes=120, seed=0)


# Small networks, trained briefly: enough for four columns.
QUICK = {"hidden": 32, "trunk_steps": 100, "head_steps": 100, "representation_steps": 300}


@pytest.fixture(scope="session")
def quick():
    return dict(QUICK)


@pytest.fixture(scope="session")
def points_run(points):
    return psifold.cluster(points, seed=0, **QUICK)


class Corridor(gym.Env):
    """Ten cells, the last is the end; observations as the test wants them."""

    def __init__(self, look=lambda cell: np.int64(cell), space=None, n=10):
        self.look, self.n = look, n
        self.observation_space = space or gym.spaces.Discrete(n)
        self.action_space = gym.spaces.Discrete(2, start=3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = int(self.np_random.integers(self.n - 1))
        return self.look(self.cell), {}

    def step(self, action):
        self.cell = max(0, self.cell + (1 if action == 4 else -1))
        done = self.cell == self.n - 1
        return self.look(self.cell), float(done), done, False, {}


@pytest.fixture
def corridor():
    return Corridor


class Ring(gym.Env):
    """Five places in a ring, and a walker who turns or does not; which way they walk is not seen,
    only where they are. Place 0 earns 1."""

    def __init__(self, steps=20):
        self.steps = steps
        self.observation_space = gym.spaces.Discrete(5)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.way, self.t = int(self.np_random.integers(5)), 1, 0
        return np.int64(self.place), {}

    def step(self, action):
        self.way = -self.way if action else self.way
        self.place, self.t = (self.place + self.way) % 5, self.t + 1
        over = self.t == self.steps
        return np.int64(self.place), float(self.place == 0), False, over, {}


@pytest.fixture(scope="session")
def ring():
    return Ring


@pytest.fixture(scope="session")
def ring_run(ring):
    return psifold.cluster(psifold.collect(ring(), episodes=3000, seed=0), stack=2)
