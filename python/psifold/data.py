"""Trajectories: the only thing psifold learns from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from ctypes import byref, c_void_p
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Union

import numpy as np
import numpy.typing as npt

from psifold._native import (
    DTYPES,
    MAX_RANK,
    Columns,
    Handle,
    Session,
    address,
    as_json,
    encoded,
    encoded_list,
    lib,
    view,
    whole,
)
from psifold.errors import DataError, ShapeError, UsageError
from psifold.progress import Watcher, watcher

if TYPE_CHECKING:
    import minari

Array = npt.NDArray[Any]
AnyPath = str | os.PathLike[str]
#: What ``cluster`` takes: trajectories, a path or several, a Minari data set, or a mapping of
#: arrays.
Data = Union["Trajectories", AnyPath, Sequence[AnyPath], Mapping[str, Any], "minari.MinariDataset"]


class Episode(NamedTuple):
    """One episode: L actions and rewards, L + 1 observations."""

    observations: Array
    actions: npt.NDArray[np.int32]
    rewards: npt.NDArray[np.float64]
    terminated: bool
    truncated: bool


def plain_array(name: str, value: Any) -> Array:
    """An array the library can read as it is; anything else is refused, never copied."""
    array = np.asarray(value)
    if not array.dtype.isnative:
        raise ShapeError(
            f"{name} is not in this machine's byte order: pass "
            f"{name}.astype({name}.dtype.newbyteorder('='))"
        )
    if array.dtype not in DTYPES:
        known = ", ".join(dtype.name for dtype in DTYPES)
        raise ShapeError(f"{name} is of type {array.dtype}: psifold takes {known}")
    if not array.flags.c_contiguous:
        raise ShapeError(f"{name} is not contiguous: pass np.ascontiguousarray({name})")
    if array.size == 0:
        raise ShapeError(f"{name} is empty: its shape is {array.shape}")
    return array


def describe(rows: Array) -> Columns:
    """The rows of an array (n, …) as the library has them."""
    if rows.ndim < 1:
        raise ShapeError("observations need a first axis: one row for every observation")
    if rows.ndim - 1 > MAX_RANK:
        raise ShapeError(f"an observation has at most {MAX_RANK} dimensions, not {rows.ndim - 1}")
    columns = Columns(
        n_observations=len(rows),
        dtype=DTYPES.index(rows.dtype),
        rank=rows.ndim - 1,
        observations=address(rows),
    )
    for i, size in enumerate(rows.shape[1:]):
        columns.dim[i] = size
    return columns


#: What the numbers of a column may be: their kinds in numpy, the library's type, and in words.
Numbers = tuple[str, Any, str]
INTEGERS: Numbers = ("iub", np.int32, "32-bit integers")
REALS: Numbers = ("fiub", np.float64, "real numbers")
TRUTHS: Numbers = ("biu", np.uint8, "true or false")


def _column(name: str, value: Any, length: int, what: Numbers) -> Array:
    """A column of numbers, in the library's type."""
    kinds, dtype, words = what
    array = np.asarray(value)
    if array.ndim != 1 or len(array) != length:
        raise ShapeError(f"{name} has shape {array.shape}, not ({length},)")
    if length > 0 and array.dtype.kind not in kinds:
        raise ShapeError(f"{name} is of type {array.dtype}, and should be {words}")
    made = np.ascontiguousarray(array, dtype)
    if dtype != np.float64 and not np.array_equal(made, array):
        raise DataError(f"{name} has numbers that are not {words}")
    return made


class Trajectories:
    """Episodes, one after the other, in columns.

    All states of all episodes stand in ``observations`` (N + E rows for N transitions in E
    episodes): an episode of L steps has L + 1 of them. ``episode_lengths`` says where each ends,
    ``terminated`` whether it ended in a terminal state or was cut off. The observations are used
    where they are; nothing is copied, and the array is kept alive.

    >>> import numpy as np, psifold
    >>> data = psifold.Trajectories(
    ...     observations=np.array([0, 1, 2, 0, 1], np.int64),  # two episodes: 0 1 2 and 0 1
    ...     actions=[1, 1, 1], rewards=[0.0, 1.0, 0.0],
    ...     episode_lengths=[2, 1], terminated=[True, False])
    >>> data
    <psifold.Trajectories: 2 episodes, 3 transitions, 2 actions, int64 observations>
    """

    def __init__(
        self,
        observations: Any,
        actions: Any,
        rewards: Any,
        episode_lengths: Any,
        terminated: Any,
        *,
        n_actions: int | None = None,
        latent_states: Any = None,
        observation_key: str | None = None,
    ) -> None:
        rows = plain_array("observations", observations)
        columns = describe(rows)
        lengths = np.asarray(episode_lengths)
        if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or len(lengths) == 0:
            raise ShapeError("episode_lengths is a list of whole numbers, one for every episode")
        if lengths.min() < 0:
            raise DataError("an episode cannot have a negative length")
        episodes, transitions = len(lengths), int(lengths.sum())
        if len(rows) != transitions + episodes:
            raise ShapeError(
                f"{episodes} episodes of {transitions} transitions together have "
                f"{transitions + episodes} observations, not {len(rows)}: "
                "the last observation of every episode counts"
            )
        offsets = np.zeros(episodes + 1, np.uint64)
        np.cumsum(lengths, out=offsets[1:])
        ended = _column("terminated", terminated, episodes, TRUTHS)
        parts: dict[str, Array | None] = {
            "actions": _column("actions", actions, transitions, INTEGERS),
            "rewards": _column("rewards", rewards, transitions, REALS),
            "episode_offsets": offsets,
            "terminated": ended,
            "truncated": (ended == 0).astype(np.uint8),
            "final_missing": np.zeros(episodes, np.uint8),
            "latent_states": None
            if latent_states is None
            else _column("latent_states", latent_states, len(rows), INTEGERS),
        }
        taken = parts["actions"]
        assert taken is not None
        columns.n_episodes, columns.n_transitions = episodes, transitions
        known = int(taken.max(initial=-1)) + 1 if n_actions is None else n_actions
        columns.n_actions = whole("n_actions", known)
        columns.observation_key = None if observation_key is None else observation_key.encode()
        for name, part in parts.items():
            setattr(columns, name, address(part))
        session, out = Session(1), c_void_p()
        session.call("flat_data_over", byref(columns), byref(out))
        self._take(Handle(session, out, "flat_data_free", keep=(rows, parts)))

    def _take(self, handle: Handle, paths: Sequence[Path] = ()) -> None:
        self._handle, self.paths = handle, tuple(paths)
        columns = Columns()
        lib.flat_data_columns(handle.pointer, byref(columns))
        self._columns = columns
        self.n_episodes = int(columns.n_episodes)
        self.n_transitions = int(columns.n_transitions)
        self.n_actions = int(columns.n_actions)
        n, e = self.n_transitions, self.n_episodes
        self.actions: npt.NDArray[np.int32] = view(handle, columns.actions, n, np.int32)
        self.rewards: npt.NDArray[np.float64] = view(handle, columns.rewards, n, np.float64)
        self.episode_offsets: npt.NDArray[np.uint64] = view(
            handle, columns.episode_offsets, e + 1, np.uint64
        )
        self.terminated: npt.NDArray[np.bool_] = view(handle, columns.terminated, e, np.bool_)
        self.truncated: npt.NDArray[np.bool_] = view(handle, columns.truncated, e, np.bool_)
        self.latent_states: npt.NDArray[np.int32] | None = (
            view(handle, columns.latent_states, n + e, np.int32) if columns.latent_states else None
        )
        key = columns.observation_key
        self.observation_key: str | None = key.decode() if key else None

    @classmethod
    def _from(cls, handle: Handle, paths: Sequence[Path] = ()) -> Trajectories:
        made = cls.__new__(cls)
        made._take(handle, paths)
        return made

    @property
    def observation_dtype(self) -> np.dtype[Any]:
        """The type of an observation's numbers."""
        return DTYPES[int(self._columns.dtype)]

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """The shape of one observation; () for a single number."""
        return tuple(self._columns.dim[: self._columns.rank])

    @property
    def observations(self) -> Array:
        """All of them, (N + E, …); read from the file where they are not in memory."""
        shape = (self.n_transitions + self.n_episodes, *self.observation_shape)
        if self._columns.observations:
            rows: Array = view(
                self._handle, self._columns.observations, shape, self.observation_dtype
            )
            return rows
        return self.rows(np.arange(shape[0], dtype=np.uint64))

    def rows(self, numbers: Any) -> Array:
        """These observations, copied; the way to look at a file that is larger than memory."""
        wanted = np.asarray(numbers)
        numbered = wanted.dtype.kind in "iu" and wanted.min(initial=0) >= 0
        if wanted.ndim != 1 or not (numbered or wanted.size == 0):
            raise UsageError("rows are asked for by a list of their numbers, from 0 on")
        wanted = np.ascontiguousarray(wanted, np.uint64)
        out = np.empty((len(wanted), *self.observation_shape), self.observation_dtype)
        session = self._handle.session
        session.call(
            "flat_data_gather", self._handle.pointer, address(wanted), len(wanted), address(out)
        )
        return out

    def __len__(self) -> int:
        return self.n_episodes

    def __getitem__(self, index: int) -> Episode:
        if not -self.n_episodes <= index < self.n_episodes:
            raise IndexError(f"there are {self.n_episodes} episodes")
        e = index % self.n_episodes
        begin, end = int(self.episode_offsets[e]), int(self.episode_offsets[e + 1])
        first, last = begin + e, end + e + 1
        in_memory = bool(self._columns.observations)
        rows = self.observations[first:last] if in_memory else self.rows(np.arange(first, last))
        return Episode(
            rows,
            self.actions[begin:end],
            self.rewards[begin:end],
            bool(self.terminated[e]),
            bool(self.truncated[e]),
        )

    def __iter__(self) -> Iterator[Episode]:
        return (self[e] for e in range(self.n_episodes))

    def __repr__(self) -> str:
        shape = "×".join(map(str, self.observation_shape))
        return (
            f"<psifold.Trajectories: {self.n_episodes:,} episodes, {self.n_transitions:,} "
            f"transitions, {self.n_actions} actions, "
            f"{self.observation_dtype.name}{' ' + shape if shape else ''} observations>"
        )

    def summary(self) -> dict[str, Any]:
        """What is in them, and, under ``problems``, what is wrong with them."""
        found: dict[str, Any] = self._handle.session.text("flat_data_summary", self._handle.pointer)
        return found

    def save(
        self, path: str | os.PathLike[str], *, name: str | None = None, replace: bool = False
    ) -> None:
        """Writes a Minari folder, or an .npz if the path ends like that."""
        name = name or Path(path).stem + "-v0"
        self._handle.session.work(
            "flat_data_save", self._handle.pointer, encoded(path), name.encode(), int(replace)
        )

    def to_minari(self, dataset_id: str) -> minari.MinariDataset:
        """A Minari data set of this id ("name-v0"), in Minari's own folder of data sets."""
        from psifold.datasets import to_minari

        return to_minari(self, dataset_id)


def read(path: AnyPath | Sequence[AnyPath], *, key: str | None = None) -> Trajectories:
    """Reads a data set: Minari, D4RL or d3rlpy HDF5, or .npz; which of them is seen from its
    content. Several files are one data set, in the order of the list. ``key`` is the entry of a
    Dict observation."""
    session, out = Session(), c_void_p()
    files = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    if not files:
        raise UsageError("a data set is at least one file")
    session.work(
        "flat_data_read", *encoded_list(files), None if key is None else key.encode(), byref(out)
    )
    handle = Handle(session, out, "flat_data_free")
    return Trajectories._from(handle, [Path(file).resolve() for file in files])


def generate(
    task: str,
    *,
    episodes: int = 1000,
    seed: int = 0,
    preset: str | None = None,
    progress: Watcher = None,
    **options: Any,
) -> Trajectories:
    """Trajectories of a built-in task under random or mostly right actions, as ``psifold generate``
    writes them; options are those of the command, ``digits="drawn"``, ``broken="2,4"``.

    >>> import psifold
    >>> data = psifold.generate("point-column-world", episodes=10)
    >>> data.observation_shape, data.n_actions
    ((2,), 4)
    """
    wanted: dict[str, Any] = {"task": task}
    if preset is not None:
        wanted["preset"] = preset
    wanted["options"] = {
        name.replace("_", "-"): True if value is True else str(value)
        for name, value in options.items()
    }
    session, out = Session(), c_void_p()
    session.work(
        "flat_data_generate",
        as_json(wanted),
        whole("episodes", episodes),
        whole("seed", seed),
        byref(out),
        watch=watcher(progress),
    )
    return Trajectories._from(Handle(session, out, "flat_data_free"))


def as_trajectories(data: Any, key: str | None = None) -> Trajectories:
    """Whatever ``cluster`` takes, as trajectories."""
    if isinstance(data, Trajectories):
        if key not in (None, data.observation_key):
            raise UsageError(f"key={key!r}, but these trajectories are of one observation only")
        return data
    if isinstance(data, (str, os.PathLike, list, tuple)):
        return read(data, key=key)
    if isinstance(data, Mapping):
        return Trajectories(**data)
    if type(data).__module__.split(".")[0] == "minari":
        from psifold.datasets import from_minari

        return from_minari(data, key)
    raise UsageError(
        f"{type(data).__name__} is no data set: give trajectories, paths, a Minari data set, or a "
        "mapping of observations, actions, rewards, episode_lengths and terminated"
    )
