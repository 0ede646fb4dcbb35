"""Minari data sets, of any storage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psifold.collecting import choose_key, kept_type, number_of_actions, pick
from psifold.data import Trajectories, read
from psifold.errors import DataError, UsageError

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


def to_minari(data: Trajectories, dataset_id: str) -> minari.MinariDataset:
    """Leaves a data set where Minari keeps its own, and returns it."""
    import minari
    from minari.dataset.minari_dataset import parse_dataset_id
    from minari.storage.datasets_root_dir import get_dataset_path

    try:
        parse_dataset_id(dataset_id)
    except (TypeError, ValueError):
        raise UsageError(f"{dataset_id!r} is no id for Minari, such as folder/name-v0") from None
    folder = get_dataset_path(dataset_id)
    folder.parent.mkdir(parents=True, exist_ok=True)
    data.save(folder, name=dataset_id)
    return minari.load_dataset(dataset_id)
