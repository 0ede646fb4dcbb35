"""The real tasks: Gymnasium's toy text, MiniGrid, and some whose truth nobody knows.

A task here is reset, stepped and looked at; key() names its true state, and model(...) is the exact
model of all states that can be reached (None: too large). Environments are stepped without their
wrappers: the time limit is kept here, and is truncation, never termination.
"""

import contextlib
import io

import gymnasium as gym
import numpy as np
import shows
from truth import explore

with contextlib.redirect_stdout(io.StringIO()):  # a greeting; the import also registers the tasks
    from minigrid.wrappers import FullyObsWrapper

NOISE, DIMENSIONS, LOOKS = 0.05, 8, 2


class ToyText:
    """A task with a table env.P. With starts, episodes begin in any state that can be reached: from the
    fixed start a random walk sees the far end of FrozenLake 8x8 a handful of times."""

    def __init__(self, name, transitions, env_id, starts=False, show="index", limit=None, draw=None, **options):
        self.name, self.transitions, self.starts, self.show = name, transitions, starts, show
        self.env = gym.make(env_id, **options).unwrapped
        self.limit = limit or gym.spec(env_id).max_episode_steps
        self.n_actions = int(self.env.action_space.n)
        self.draw, self.pictures = draw, {}
        self.fickle = options.get("fickle_passenger", False)
        self.first = [self.named(int(s)) for s in np.flatnonzero(self.env.initial_state_distrib)]

    def named(self, s, armed=None):
        """A fickle passenger's mind is made up at the start, and hidden from the observation."""
        return (s, bool(armed)) if self.fickle else s

    def begin(self, rng):
        self.rng = rng
        self.env.reset(seed=int(rng.integers(2**31)))
        self.inner = sorted(self.model([]))
        count = self.env.observation_space.n
        self.looks = rng.normal(size=(LOOKS, count, DIMENSIONS))

    def reset(self):
        self.env.reset()
        if self.starts:
            self.env.s = self.inner[self.rng.integers(len(self.inner))]

    def step(self, action):
        _, reward, terminated, _, _ = self.env.step(action)
        return float(reward), bool(terminated)

    def key(self):
        return self.named(int(self.env.s), self.env.fickle_step if self.fickle else None)

    def observe(self):
        s = int(self.env.s)
        if self.show == "index":
            return np.int64(s)
        if self.show == "noisy":
            look = self.looks[self.rng.integers(LOOKS), s]
            return (look + NOISE * self.rng.normal(size=DIMENSIONS)).astype(np.float32)
        if s not in self.pictures:
            self.pictures[s] = self.draw(self.env, s)
        return self.pictures[s]

    def space(self, observations):
        return self.env.observation_space if self.show == "index" else box(observations)

    def outcomes(self, key):
        s, armed = key if self.fickle else (key, False)
        rows = []
        for action in range(self.n_actions):
            row = []
            for probability, after, reward, terminated in self.env.P[s][action]:
                if terminated:
                    row.append((probability, None, reward))
                elif armed and self.changes_mind(s, after):
                    *where, destination = self.env.decode(after)
                    others = [d for d in range(4) if d != destination]
                    row += [(probability / 3, (self.env.encode(*where, d), False), reward) for d in others]
                else:
                    row.append((probability, self.named(int(after), armed), reward))
            rows.append(row)
        return rows

    def changes_mind(self, s, after):
        """The taxi has moved with the passenger inside."""
        before, now = self.env.decode(s), self.env.decode(after)
        return before[2] == 4 and before[:2] != now[:2]

    def model(self, _keys):
        starts = [(s, armed) for s, _ in self.first for armed in (False, True)] if self.fickle else self.first
        return explore(starts, self.outcomes)


class Blackjack:
    """Sum, the dealer's card, usable ace. The deck is infinite, so these are the whole state, except by
    the rules of Sutton and Barto (sab), where 21 from two cards is more than 21 from three: hidden."""

    limit = 100

    def __init__(self, name, transitions, sab):
        self.name, self.transitions, self.sab = name, transitions, sab
        self.env = gym.make("Blackjack-v1", sab=sab, natural=False).unwrapped
        self.n_actions = 2

    def begin(self, rng):
        self.env.reset(seed=int(rng.integers(2**31)))

    def reset(self):
        self.env.reset()

    def step(self, action):
        _, reward, terminated, _, _ = self.env.step(action)
        return float(reward), bool(terminated)

    def key(self):
        return (*self.env._get_obs(), self.sab and len(self.env.player) == 2 and self.env._get_obs()[0] == 21)

    def observe(self):
        return np.array(self.env._get_obs(), np.int64)

    def space(self, _observations):
        return gym.spaces.MultiDiscrete([32, 11, 2])

    def model(self, keys):
        return explore(keys, self.outcomes)

    def outcomes(self, key):
        total, dealer, ace, natural = key
        stick = {1: 0.0, 0: 0.0, -1: 0.0}
        for theirs, probability in self.dealers(dealer).items():
            their_natural = theirs == "natural"
            theirs = 21 if their_natural else theirs
            won = (total > theirs) - (total < theirs)
            stick[1 if natural and not their_natural else won] += probability
        hit = []
        for card in range(1, 11):
            after, soft = total + card, ace
            if card == 1 and not ace and after + 10 <= 21:
                after, soft = after + 10, 1
            if after > 21 and soft:
                after, soft = after - 10, 0
            probability = (4 if card == 10 else 1) / 13
            hit.append((probability, None, -1.0) if after > 21 else (probability, (after, dealer, soft, False), 0.0))
        return [[(probability, None, float(reward)) for reward, probability in stick.items()], hit]

    def dealers(self, shown):
        """Where the dealer ends: a sum from 17 to 21, 0 for a bust, or a natural."""
        found = {}

        def go(low, has_ace, cards, probability):
            soft = has_ace and low + 10 <= 21
            total = low + 10 if soft else low
            if cards >= 2 and total >= 17:
                end = "natural" if cards == 2 and total == 21 else total if total <= 21 else 0
                found[end] = found.get(end, 0.0) + probability
                return
            for card in range(1, 11):
                go(low + card, has_ace or card == 1, cards + 1, probability * (4 if card == 10 else 1) / 13)

        go(shown, shown == 1, 1, 1.0)
        return found


class Grid:
    """A MiniGrid task. Rewards there fall with the steps taken (1 - 0.9 steps / limit), which no state
    shows: here reaching the goal pays 1. layouts: None is one fixed layout, 0 a new one for every
    episode, n one of n. With scatter the agent begins anywhere that it can stand, since a random
    walk of 100 steps does not leave the first of four rooms.
    show: 'cells' (FullyObsWrapper), 'pixels' (the whole grid, tile pixels a cell), 'view' (what the
    agent sees, which hides what is behind it)."""

    def __init__(self, name, transitions, env_id, show="cells", layouts=None, scatter=False, tile=8):
        self.name, self.transitions, self.show, self.tile = name, transitions, show, tile
        self.layouts, self.scatter = layouts, scatter
        self.env = gym.make(env_id).unwrapped
        self.cells = FullyObsWrapper(self.env)
        self.see, self.env.gen_obs = self.env.gen_obs, dict  # slow, and asked for only once a state
        self.env._reward = lambda: 1.0
        self.limit, self.env.max_steps = self.env.max_steps, 10**9
        self.n_actions = int(self.env.action_space.n)
        self.looks, self.snapshots, self.places = {}, {}, {}

    def begin(self, rng):
        self.rng = rng
        many = 1 if self.layouts is None else self.layouts
        self.seeds = [int(seed) for seed in rng.integers(2**31, size=many)]

    def reset(self):
        seed = self.seeds[self.rng.integers(len(self.seeds))] if self.seeds else int(self.rng.integers(2**31))
        self.env.reset(seed=seed)
        self.level = self.env.grid.encode().tobytes()
        if self.scatter:
            free = self.standing_places()
            self.env.agent_pos, self.env.agent_dir = free[self.rng.integers(len(free))]
        self.snapshots.setdefault(self.key(), self.save())

    def standing_places(self):
        """Every place and direction that can be reached from where the agent is now."""
        if self.level not in self.places:
            start = self.key()
            self.snapshots.setdefault(start, self.save())
            reached = explore([start], self.outcomes)
            self.places[self.level] = sorted({(key[1], key[2]) for key in reached})
            self.restore(self.snapshots[start])
        return self.places[self.level]

    def step(self, action):
        _, reward, terminated, _, _ = self.env.step(action)
        return float(reward), bool(terminated)

    def key(self):
        """The layout, and all that can move in it."""
        movable = tuple(
            (i, cell.encode()) for i, cell in enumerate(self.env.grid.grid) if cell and cell.type in ("door", "key")
        )
        place = tuple(int(x) for x in self.env.agent_pos)
        return (self.level, place, int(self.env.agent_dir), self.env.carrying is not None, movable)

    def save(self):
        cells = list(self.env.grid.grid)
        doors = [(cell, cell.is_open, cell.is_locked) for cell in cells if cell and cell.type == "door"]
        return self.level, cells, doors, self.env.carrying, self.env.agent_pos, self.env.agent_dir

    def restore(self, snapshot):
        self.level, cells, doors, self.env.carrying, self.env.agent_pos, self.env.agent_dir = snapshot
        self.env.grid.grid = list(cells)
        for door, is_open, is_locked in doors:
            door.is_open, door.is_locked = is_open, is_locked

    def outcomes(self, key):
        rows = []
        for action in range(self.n_actions):
            self.restore(self.snapshots[key])
            reward, terminated = self.step(action)
            after = None if terminated else self.key()
            if not terminated:
                self.snapshots.setdefault(after, self.save())
            rows.append([(1.0, after, reward)])
        return rows

    def model(self, keys):
        return explore([key for key in keys if key in self.snapshots], self.outcomes)

    def observe(self):
        key = self.key()
        if key not in self.looks:
            if self.show == "cells":
                look = self.cells.observation({})["image"]
            elif self.show == "pixels":
                look = self.env.get_frame(highlight=False, tile_size=self.tile)
            else:
                look = self.see()["image"]
            self.looks[key] = np.asarray(look, np.uint8)
        return self.looks[key]

    def space(self, observations):
        return box(observations)


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


def box(observations):
    """The space of these arrays: bytes are 0 to 255, everything else is unbounded."""
    low, high = (0, 255) if observations.dtype == np.uint8 else (-np.inf, np.inf)
    return gym.spaces.Box(low, high, observations.shape[1:], observations.dtype.type)


def toy_text():
    for side, count in (("4", 20_000), ("8", 50_000)):
        for wet in (False, True):
            for starts in (False, True):
                name = f"frozenlake{side}" + "-slippery" * wet + "-starts" * starts
                options = dict(
                    env_id="FrozenLake-v1",
                    map_name=f"{side}x{side}",
                    is_slippery=wet,
                    starts=starts,
                    limit=100 if side == "4" else 200,
                )
                yield name, count, ToyText, options
                if starts:
                    yield name + "-noisy", count, ToyText, options | {"show": "noisy"}
                    yield name + "-rendered", count, ToyText, options | {"show": "rendered", "draw": shows.frozen_lake}
    taxi = next(name for name in ("Taxi-v4", "Taxi-v3") if name in gym.registry)
    for name, extra in (("taxi", {}), ("taxi-rainy", {"is_rainy": True}), ("taxi-fickle", {"fickle_passenger": True})):
        options = {"env_id": taxi} | extra
        yield name, 100_000, ToyText, options
        if name != "taxi-fickle":
            yield name + "-noisy", 100_000, ToyText, options | {"show": "noisy"}
            yield name + "-rendered", 100_000, ToyText, options | {"show": "rendered", "draw": shows.taxi}
    for wet in (False, True):
        for starts in (False, True):
            name = "cliff" + "-slippery" * wet + "-starts" * starts
            options = dict(env_id="CliffWalking-v1", is_slippery=wet, starts=starts, limit=200)
            yield name, 50_000, ToyText, options
            if starts:
                yield name + "-noisy", 50_000, ToyText, options | {"show": "noisy"}
                yield name + "-rendered", 50_000, ToyText, options | {"show": "rendered", "draw": shows.cliff}
    yield "blackjack", 100_000, Blackjack, {"sab": False}
    yield "blackjack-sab", 100_000, Blackjack, {"sab": True}


def grids():
    for name, env_id, count, options in (
        ("empty5", "MiniGrid-Empty-5x5-v0", 100_000, {}),
        ("empty8", "MiniGrid-Empty-8x8-v0", 100_000, {}),
        ("lavagap5", "MiniGrid-LavaGapS5-v0", 100_000, {}),
        ("doorkey5", "MiniGrid-DoorKey-5x5-v0", 100_000, {}),
        ("fourrooms", "MiniGrid-FourRooms-v0", 100_000, {"scatter": True, "tile": 3}),
    ):
        wandering = name.startswith("empty")
        several = "MiniGrid-Empty-Random-5x5-v0" if name == "empty5" else env_id
        layouts = 20 if name == "fourrooms" else 0
        for show in ("cells", "pixels", "view"):
            label = name + {"cells": ""}.get(show, "-" + show)
            fewer = 30_000 if name == "fourrooms" and show == "pixels" else count
            yield label, fewer, Grid, {"env_id": env_id, "show": show} | options
            if name == "empty8" or (wandering and show == "pixels"):
                continue
            yield label + "-random", fewer, Grid, {"env_id": several, "show": show, "layouts": layouts} | options


def untold():
    for name, env_id in (("cartpole", "CartPole-v1"), ("acrobot", "Acrobot-v1"), ("mountaincar", "MountainCar-v0")):
        yield name, 100_000, Classic, {"env_id": env_id}
    for game in ("breakout", "freeway", "asterix"):
        yield "minatar-" + game, 100_000, MinAtar, {"game": game}


def all_tasks():
    """name -> function that makes the task with the given number of transitions, or its own."""
    found = {}
    for name, count, kind, options in (*toy_text(), *grids(), *untold()):
        found[name] = lambda n=None, name=name, count=count, kind=kind, options=options: kind(
            name, n or count, **options
        )
    return found
