"""MiniGrid: deterministic, so that stepping every action from every state enumerates it."""

import contextlib
import io

import gymnasium as gym
import numpy as np
from shows import box
from truth import explore

with contextlib.redirect_stdout(io.StringIO()):  # a greeting; the import also registers the tasks
    from minigrid.wrappers import FullyObsWrapper


def movable(cell):
    """Whether this thing can change, so that it is no part of the layout."""
    return cell.type in ("door", "key")


class Grid:
    """A MiniGrid task. Rewards there fall with the steps taken (1 - 0.9 steps / limit), which no
    state shows: here reaching the goal pays 1. layouts: None is one fixed layout, 0 a new one for
    every episode, n one of n. With scatter the agent begins anywhere that it can stand, since a
    random walk of 100 steps does not leave the first of four rooms. show: 'cells'
    (FullyObsWrapper), 'pixels' (the whole grid, tile pixels a cell), 'view' (what the agent sees,
    which hides what is behind it)."""

    def __init__(
        self, name, transitions, env_id, show="cells", layouts=None, scatter=False, tile=8
    ):
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
        seed = (
            self.seeds[self.rng.integers(len(self.seeds))]
            if self.seeds
            else int(self.rng.integers(2**31))
        )
        self.env.reset(seed=seed)
        self.level = tuple(
            cell.type if cell and not movable(cell) else None for cell in self.env.grid.grid
        )
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
        things = tuple(
            (i, cell.encode())
            for i, cell in enumerate(self.env.grid.grid)
            if cell and movable(cell)
        )
        place = tuple(int(x) for x in self.env.agent_pos)
        return (self.level, place, int(self.env.agent_dir), self.env.carrying is not None, things)

    def save(self):
        cells = list(self.env.grid.grid)
        doors = [
            (cell, cell.is_open, cell.is_locked) for cell in cells if cell and cell.type == "door"
        ]
        return self.level, cells, doors, self.env.carrying, self.env.agent_pos, self.env.agent_dir

    def restore(self, snapshot):
        self.level, cells, doors, self.env.carrying, self.env.agent_pos, self.env.agent_dir = (
            snapshot
        )
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


class Things(Grid):
    """A MiniGrid with balls and boxes, and a mission. As it is (falling), the reward falls with the
    steps taken, which nothing shows."""

    plain = True

    def __init__(self, *arguments, falling=False, **options):
        super().__init__(*arguments, **options)
        self.falling = falling
        if falling:
            del self.env._reward
            self.env.max_steps = self.limit

    def key(self):
        cells = tuple(cell.encode() if cell else None for cell in self.env.grid.grid)
        place = tuple(int(x) for x in self.env.agent_pos)
        held = self.env.carrying.encode() if self.env.carrying else None
        steps = min(self.env.step_count, self.limit) if self.falling else 0
        return (self.env.mission, cells, place, int(self.env.agent_dir), held, steps)

    def save(self):
        return super().save(), dict(vars(self.env))

    def restore(self, snapshot):
        vars(self.env).update(snapshot[1])
        super().restore(snapshot[0])
        for i, cell in enumerate(self.env.grid.grid):
            if cell and cell.type in ("ball", "box", "key"):
                cell.cur_pos = np.array([i % self.env.width, i // self.env.width])
