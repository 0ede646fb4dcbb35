"""Data from Gymnasium environments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psifold._native import DTYPES, MAX_RANK
from psifold.data import Trajectories
from psifold.errors import ShapeError, UnsupportedError, UsageError
from psifold.progress import Bar, Progress, Watcher, watcher

if TYPE_CHECKING:
    import gymnasium

FIRST_ROOM = 1024
TELL_EVERY = 16  # episodes

#: The type in which numbers of other types are kept, exactly.
WIDER = {
    "bool": "uint8",
    "int8": "int32",
    "int16": "int32",
    "uint16": "int32",
    "uint32": "int64",
    "float16": "float32",
}


class Column:
    """An array that grows."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.rows = np.empty((FIRST_ROOM, *shape), dtype)
        self.n = 0

    def add(self, row: Any) -> None:
        if self.n == len(self.rows):
            self.rows = np.concatenate([self.rows, np.empty_like(self.rows)])
        self.rows[self.n] = row
        self.n += 1

    def done(self) -> npt.NDArray[Any]:
        return self.rows[: self.n]


class Observations(Column):
    """Rows of one shape, whose type widens where one of them does not fit into it: the first
    observation may be of whole numbers and the others not."""

    def __init__(self, first: Any) -> None:
        row = as_array(first)
        super().__init__(row.shape, kept_type(row))
        self.shape, self.seen = row.shape, row.dtype

    def add(self, row: Any) -> None:
        row = as_array(row)
        if row.shape != self.shape:
            raise ShapeError(f"an observation has shape {row.shape}, and the first {self.shape}")
        if row.dtype != self.seen:
            self.seen = row.dtype
            wider = np.promote_types(self.rows.dtype, kept_type(row))
            self.rows = self.rows.astype(wider, copy=False)
        super().add(row)


def as_array(observation: Any) -> npt.NDArray[Any]:
    """An observation as one array."""
    try:
        return np.asarray(observation)
    except ValueError as error:
        raise ShapeError(
            "an observation has parts of different shapes: "
            "gymnasium.wrappers.FlattenObservation makes one array of them"
        ) from error


def as_number(reward: Any) -> float:
    """A reward; of several at a step, somebody has to say which."""
    if np.size(reward) != 1:
        raise ShapeError(
            f"a reward is {reward}: psifold predicts one number a step; "
            "choose one of them, or weigh them in a wrapper"
        )
    return float(np.asarray(reward, np.float64).reshape(()))


def pick(observation: Any, key: str | None) -> Any:
    """The observation itself, or the entry of a Dict observation."""
    return observation if key is None else observation[key]


def choose_key(space: Any, key: str | None) -> str | None:
    """Which entry of a Dict observation; the only one where there is one only."""
    import gymnasium

    if not isinstance(space, gymnasium.spaces.Dict):
        if key is not None:
            raise UsageError(f"key={key!r}, but observations are {space}")
        return None
    names = list(space.spaces)
    if key is None and len(names) == 1:
        return str(names[0])
    if key not in names:
        all_of_them = (
            ", or flatten them all (gymnasium.wrappers.FlattenObservation)"
            if space.is_np_flattenable
            else ""
        )
        raise UsageError(
            f"observations are a Dict: key is one of {', '.join(map(repr, names))}{all_of_them}"
        )
    return key


def number_of_actions(space: Any, whose: str) -> tuple[int, int]:
    """How many actions there are, and the first of them."""
    import gymnasium

    if isinstance(space, gymnasium.spaces.Discrete):
        return int(space.n), int(space.start)
    raise UnsupportedError(
        f"the actions of {whose} are {space}: psifold tells states apart by what follows each "
        "action, and needs a Discrete action space"
    )


def kept_type(observation: npt.NDArray[Any]) -> np.dtype[Any]:
    """The type in which observations like this one are kept."""
    dtype = np.dtype(WIDER.get(observation.dtype.name, observation.dtype))
    if dtype not in DTYPES:
        raise ShapeError(
            f"observations are of type {observation.dtype}, which psifold does not know"
        )
    if observation.ndim > MAX_RANK:
        raise ShapeError(
            f"an observation has at most {MAX_RANK} dimensions, not {observation.ndim}"
        )
    return dtype


def collect(
    env: gymnasium.Env[Any, Any],
    *,
    episodes: int,
    seed: int | None = 0,
    policy: Callable[[Any], Any] | None = None,
    key: str | None = None,
    max_steps: int | None = None,
    progress: Watcher = None,
) -> Trajectories:
    """Episodes of a Gymnasium environment with discrete actions.

    ``policy`` chooses an action for an observation; without it, actions are random. The same seed
    gives the same episodes. An episode that a time limit ends is cut off, not terminated;
    ``max_steps`` is such a limit for environments that have none. ``key`` is the entry of a Dict
    observation to keep.

    >>> import gymnasium as gym, psifold
    >>> psifold.collect(gym.make("CliffWalking-v1", max_episode_steps=50), episodes=3)
    <psifold.Trajectories: 3 episodes, 150 transitions, 4 actions, int64 observations>
    """
    name = getattr(getattr(env, "spec", None), "id", None) or type(env.unwrapped).__name__
    if hasattr(env, "num_envs"):
        raise UnsupportedError("collect takes a single environment, not a vector of them")
    n_actions, first_action = number_of_actions(env.action_space, name)
    key = choose_key(env.observation_space, key)
    if episodes < 1:
        raise UsageError("episodes must be at least 1")
    env.action_space.seed(seed)
    observation, _ = env.reset(seed=seed)
    observations = Observations(pick(observation, key))
    actions, rewards = Column((), np.int32), Column((), np.float64)
    lengths, ends = [], []
    watch = watcher(progress)
    try:
        for episode in range(episodes):
            if episode > 0:
                observation, _ = env.reset()
            begin = actions.n
            observations.add(pick(observation, key))
            terminated = truncated = False
            while not (terminated or truncated):
                action = env.action_space.sample() if policy is None else policy(observation)
                observation, reward, terminated, truncated, _ = env.step(action)
                observations.add(pick(observation, key))
                actions.add(int(action) - first_action)
                rewards.add(reward if isinstance(reward, (int, float)) else as_number(reward))
                truncated = truncated or actions.n - begin == max_steps
            lengths.append(actions.n - begin)
            ends.append(bool(terminated))
            if watch and episode % TELL_EVERY == 0:
                watch(Progress("collecting", episode + 1, episodes, 0.0, -1.0, 0))
    finally:
        if isinstance(watch, Bar):
            watch.close()
    return Trajectories(
        observations.done(),
        actions.done(),
        rewards.done(),
        lengths,
        ends,
        n_actions=n_actions,
        observation_key=key,
    )
