"""Minari data sets, of any storage."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from psifold.collecting import choose_key, kept_type, number_of_actions, pick
from psifold.data import Trajectories, read
from psifold.errors import DataError

if TYPE_CHECKING:
    import minari


def from_minari(dataset: minari.MinariDataset, key: str | None = None) -> Trajectories:
    """Trajectories of a Minari data set. HDF5 is read by the library, where it lies; other
    storages, and data sets of which episodes were left out, through Minari."""
    name = dataset.spec.dataset_id
    n_actions, first_action = number_of_actions(dataset.action_space, name)
    key = choose_key(dataset.observation_space, key)
    storage: Any = dataset.storage
    whole = len(dataset.episode_indices) == storage.total_episodes
    if whole and storage.FORMAT == "hdf5" and not getattr(dataset, "combined_datasets", None):
        return read(storage.data_path, key=key)
    observations, actions, rewards, lengths, ends = [], [], [], [], []
    for episode in dataset.iterate_episodes():
        rows = np.asarray(pick(episode.observations, key))
        observations.append(rows.astype(kept_type(rows[0]), copy=False))
        actions.append(np.asarray(episode.actions) - first_action)
        rewards.append(np.asarray(episode.rewards, float))
        lengths.append(len(episode.rewards))
        ends.append(bool(episode.terminations[-1]) if len(episode.terminations) else False)
    if not observations:
        raise DataError(f"{name} has no episodes")
    return Trajectories(
        np.concatenate(observations),
        np.concatenate(actions),
        np.concatenate(rewards),
        lengths,
        ends,
        n_actions=n_actions,
        observation_key=key,
    )


def observation_space(data: Trajectories) -> gymnasium.Space[Any]:
    """The space that observations come from: as narrow as they say."""
    dtype, shape = data.observation_dtype, data.observation_shape
    if shape == () and dtype.kind == "i":
        rows = data.observations
        first = min(int(rows.min()), 0)
        return gymnasium.spaces.Discrete(int(rows.max()) - first + 1, start=first)
    if dtype.kind == "f":
        return gymnasium.spaces.Box(-np.inf, np.inf, shape, dtype.type)
    bounds = np.iinfo(dtype)
    return gymnasium.spaces.Box(int(bounds.min), int(bounds.max), shape, dtype.type)


def to_minari(data: Trajectories, dataset_id: str) -> minari.MinariDataset:
    """Leaves a data set with Minari, and returns it."""
    import minari
    from minari.data_collector import EpisodeBuffer

    buffers = []
    for number, episode in enumerate(data):
        ends = np.zeros((2, len(episode.rewards)), bool)
        if len(episode.rewards):
            ends[:, -1] = episode.terminated, episode.truncated
        buffers.append(
            EpisodeBuffer(
                id=number,
                observations=episode.observations,
                actions=episode.actions.astype(np.int64),
                rewards=episode.rewards,
                terminations=ends[0],
                truncations=ends[1],
            )
        )
    return minari.create_dataset_from_buffers(
        dataset_id,
        buffers,
        action_space=gymnasium.spaces.Discrete(data.n_actions),
        observation_space=observation_space(data),
        algorithm_name="psifold",
        description=json.dumps({"psifold": "trajectories"}),
    )
