"""Latent states for Gymnasium: environments seen through a run, and the latent MDP itself."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Discrete, MultiDiscrete

from psifold.collecting import choose_key, kept_type, pick
from psifold.errors import DataError, MissingError, ShapeError
from psifold.model import Model
from psifold.run import Run

Unknown = Literal["hold", "error"]


class _Seer:
    """Asks the run, and remembers what to say where the run knows nothing."""

    def __init__(self, run: Run, space: Any, unknown: Unknown) -> None:
        self.run, self.unknown, self.stack = run, unknown, run.stack
        self.key = choose_key(space, run.observation_key)
        counts = np.bincount(run.labels[run.labels >= 0], minlength=run.n_states)
        if run.has_terminal:
            counts[0] = 0
        self.commonest = int(counts.argmax())
        self.frames: npt.NDArray[Any] | None = None  # (n, stack, …) the last ones of n episodes

    def look(
        self, rows: npt.NDArray[Any], before: npt.NDArray[np.int64], begins: Any, stepped: bool
    ) -> tuple[Any, Any]:
        """The latent states of observations (n, …), and which of them are unknown: those stay
        what they were before. Where an episode begins, its first observation repeats; others have
        stepped on, or are shown again while their neighbours are reset."""
        rows = np.ascontiguousarray(rows, kept_type(rows[0]))
        if self.stack > 1:
            rows = self.remember(rows, begins, stepped)
        labels = self.run.predict(rows).astype(np.int64)
        strange = labels < 0
        if strange.any() and self.unknown == "error":
            raise DataError("an observation is unlike anything that the run has seen")
        return np.where(strange, before, labels), strange

    def remember(self, rows: npt.NDArray[Any], begins: Any, stepped: bool) -> npt.NDArray[Any]:
        """The rows with those before them, as the run sees them."""
        frames = np.repeat(rows[:, None], self.stack, axis=1)
        if self.frames is not None:
            kept = self.frames[:, 1:] if stepped else self.frames[:, :-1]
            later = np.concatenate([kept, rows[:, None]], axis=1)
            frames = np.where(np.reshape(begins, (-1,) + (1,) * rows.ndim), frames, later)
        self.frames = frames
        return frames.reshape(len(rows), -1) if rows.ndim == 2 else frames


class LatentObservation(
    gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs
):
    """An environment whose observations are latent states: ``Discrete(K)``.

    Where an observation is unlike anything that the run has seen, the latent state stays what it
    was and ``info["latent_unknown"]`` is True (``unknown="hold"``), or it is an error
    (``unknown="error"``). Vector environments become a ``LatentVectorObservation``.

    >>> import gymnasium as gym, psifold
    >>> world = gym.make("FrozenLake-v1", is_slippery=False)
    >>> run = psifold.cluster(psifold.collect(world, episodes=3000, seed=0))
    >>> env = psifold.LatentObservation(world, run)
    >>> env.observation_space == gym.spaces.Discrete(run.n_states)
    True
    """

    def __new__(cls, env: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(env, gymnasium.vector.VectorEnv):
            return LatentVectorObservation(env, *arguments, **options)
        return super().__new__(cls)

    def __init__(self, env: Any, run: Run, *, unknown: Unknown = "hold") -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self, run=run, unknown=unknown)
        gymnasium.Wrapper.__init__(self, env)
        self._seer = _Seer(run, env.observation_space, unknown)
        self._last = np.array([self._seer.commonest])
        self.observation_space = Discrete(run.n_states)

    def _see(
        self, observation: Any, info: dict[str, Any], begins: bool
    ) -> tuple[Any, dict[str, Any]]:
        rows = np.asarray(pick(observation, self._seer.key))[None]
        self._last, strange = self._seer.look(rows, self._last, begins, not begins)
        if strange[0]:
            info = {**info, "latent_unknown": True}
        return self._last[0], info

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        self._last = np.array([self._seer.commonest])
        return self._see(*self.env.reset(seed=seed, options=options), begins=True)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        latent, info = self._see(observation, info, begins=False)
        return latent, reward, terminated, truncated, info


class LatentVectorObservation(gymnasium.vector.VectorWrapper):
    """The same for a vector of environments: one latent state for each."""

    def __init__(self, env: Any, run: Run, *, unknown: Unknown = "hold") -> None:
        super().__init__(env)
        self._seer = _Seer(run, env.single_observation_space, unknown)
        self._last = np.full(env.num_envs, self._seer.commonest)
        mode = env.metadata.get("autoreset_mode")
        self._mode = getattr(mode, "name", "NEXT_STEP")
        self._ended = np.zeros(env.num_envs, bool)
        self.single_observation_space = Discrete(run.n_states)
        self.observation_space = MultiDiscrete([run.n_states] * env.num_envs)

    def _see(
        self, observations: Any, info: dict[str, Any], begins: Any, stepped: bool
    ) -> tuple[Any, dict[str, Any]]:
        rows = np.asarray(pick(observations, self._seer.key))
        self._last, strange = self._seer.look(rows, self._last, begins, stepped)
        if strange.any():
            info = {**info, "latent_unknown": strange}
        return self._last.copy(), info

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        begins = np.broadcast_to((options or {}).get("reset_mask", True), self._ended.shape)
        self._ended = self._ended & ~begins
        return self._see(*self.env.reset(seed=seed, options=options), begins, stepped=False)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observations, rewards, terminated, truncated, info = self.env.step(actions)
        before, self._ended = self._ended, np.logical_or(terminated, truncated)
        begins = {"NEXT_STEP": before, "SAME_STEP": self._ended}.get(self._mode, False)
        latent, info = self._see(observations, info, begins, stepped=True)
        return latent, rewards, terminated, truncated, info


class LatentEnv(gymnasium.Env[Any, Any]):
    """A finite model, such as a run's latent MDP, to act in.

    Rewards are the expected ones. An action that was never seen in a state ends the episode there:
    it is truncated, earns nothing, and ``info["unseen"]`` is True.

    >>> import psifold
    >>> run = psifold.cluster(psifold.generate("column-world", episodes=300))
    >>> env = run.to_env()
    >>> env.reset(seed=0)[0] in env.observation_space
    True
    """

    metadata = {"render_modes": []}

    def __init__(self, model: Model, start: Any = None) -> None:
        self.model = model
        going = ~model.terminal
        if not going.any():
            raise MissingError("all states of the model are terminal")
        self._start = going / going.sum() if start is None else np.asarray(start, float)
        if self._start.shape != (model.n_states,) or not np.isclose(self._start.sum(), 1.0):
            raise ShapeError(f"start is a distribution over {model.n_states} states")
        self.observation_space = Discrete(model.n_states)
        self.action_space = Discrete(model.n_actions)
        self._state = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self._state = int(self.np_random.choice(self.model.n_states, p=self._start))
        return self._state, {}

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        after, probability = self.model.successors(self._state, int(action))
        if len(after) == 0:
            return self._state, 0.0, False, True, {"unseen": True}
        reward = float(self.model.reward[self._state, int(action)])
        draw = self.np_random.random() * probability.sum()
        at = int(np.searchsorted(np.cumsum(probability), draw, side="right"))
        self._state = int(after[min(at, len(after) - 1)])
        return self._state, reward, bool(self.model.terminal[self._state]), False, {}
