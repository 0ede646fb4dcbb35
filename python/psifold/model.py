"""Finite models: the latent MDP of a run, plans, and exact quotients."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from ctypes import byref, c_void_p
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psifold._native import (
    Handle,
    ModelRecord,
    Session,
    address,
    as_json,
    encoded,
    lib,
    take_json,
    view,
)

if TYPE_CHECKING:
    import networkx
    import pandas
    import scipy.sparse


@dataclass(frozen=True)
class Plan:
    """Values and best actions: ``policy[s]`` is −1 where there is nothing to choose."""

    gamma: float
    value: npt.NDArray[np.float64]  #: (S)
    q: npt.NDArray[np.float64]  #: (S, A); −inf for actions that were never seen
    policy: npt.NDArray[np.int32]  #: (S)
    sweeps: int
    converged: bool

    def to_pandas(self) -> pandas.DataFrame:
        """A table with a row for every state."""
        import pandas

        columns = {"value": self.value, "action": self.policy}
        columns.update({f"q{a}": self.q[:, a] for a in range(self.q.shape[1])})
        return pandas.DataFrame(columns).rename_axis("state")


class _Actions(Sequence[Any]):
    """Something for every action, made when it is asked for and kept."""

    def __init__(self, n: int, make: Callable[[int], Any]) -> None:
        self._n, self._make = n, make
        self._kept: dict[int, Any] = {}

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, action: Any) -> Any:
        if not -self._n <= action < self._n:
            raise IndexError(f"there are {self._n} actions")
        action = int(action) % self._n
        if action not in self._kept:
            self._kept[action] = self._make(action)
        return self._kept[action]


class Model:
    """A finite MDP: ``M[a]`` is a sparse (S, S) matrix of transition probabilities, ``w[a]`` the
    expected rewards (S).

    >>> import psifold
    >>> run = psifold.cluster(psifold.generate("column-world", episodes=300))
    >>> run.model
    <psifold.Model: 4 states, 4 actions, 12 transitions>
    >>> float(run.model.M[0].sum())  # the terminal state has no successor
    3.0
    """

    def __init__(self, owner: object, record: ModelRecord) -> None:
        self._record, self._owner = record, owner
        s, a = int(record.n_states), int(record.n_actions)
        self.n_states, self.n_actions = s, a
        entries = int(record.n_entries)
        self.offsets: npt.NDArray[np.uint64] = view(owner, record.offsets, s * a + 1, np.uint64)
        self.next: npt.NDArray[np.int32] = view(owner, record.next, entries, np.int32)
        self.probability: npt.NDArray[np.float64] = view(
            owner, record.probability, entries, np.float64
        )
        self.reward: npt.NDArray[np.float64] = view(owner, record.reward, (s, a), np.float64)
        self.terminal: npt.NDArray[np.bool_] = view(owner, record.terminal, s, np.bool_)

    @classmethod
    def _of(cls, handle: Handle, name: str) -> Model:
        record = ModelRecord()
        getattr(lib, name)(handle.pointer, byref(record))
        return cls(handle, record)

    @cached_property
    def M(self) -> Sequence[scipy.sparse.csr_array]:
        """Transition probabilities, a sparse (S, S) matrix for every action."""
        return _Actions(self.n_actions, self._matrix)

    @property
    def w(self) -> npt.NDArray[np.float64]:
        """Expected rewards (A, S)."""
        return self.reward.T

    @cached_property
    def seen(self) -> npt.NDArray[np.bool_]:
        """(S, A) whether an action was ever taken in a state."""
        return (np.diff(self.offsets.astype(np.int64)) > 0).reshape(self.n_states, self.n_actions)

    def successors(self, state: int, action: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """The states that may follow, and how probable each is."""
        if not (0 <= state < self.n_states and 0 <= action < self.n_actions):
            raise IndexError(f"there are {self.n_states} states and {self.n_actions} actions")
        row = state * self.n_actions + action
        begin, end = int(self.offsets[row]), int(self.offsets[row + 1])
        return self.next[begin:end], self.probability[begin:end]

    def _matrix(self, action: int) -> scipy.sparse.csr_array:
        import scipy.sparse

        bounds = self.offsets.astype(np.int64)
        begin, end = bounds[action : -1 : self.n_actions], bounds[action + 1 :: self.n_actions]
        lengths = end - begin
        starts = np.concatenate([[0], np.cumsum(lengths)])
        entries = np.repeat(begin - starts[:-1], lengths) + np.arange(starts[-1])
        shape = (self.n_states, self.n_states)
        return scipy.sparse.csr_array(
            (self.probability[entries], self.next[entries], starts), shape=shape
        )

    def plan(self, gamma: float = 0.95, **options: Any) -> Plan:
        """Value iteration. Actions that were never seen in a state are not chosen there
        (``unseen="excluded"``), or are worth ``optimistic_value`` (``unseen="optimistic"``)."""
        value = np.empty(self.n_states)
        q = np.empty((self.n_states, self.n_actions))
        policy = np.empty(self.n_states, np.int32)
        out = c_void_p()
        Session(1).call(
            "flat_plan",
            byref(self._record),
            as_json({"gamma": float(gamma), **options}),
            address(value),
            address(q),
            address(policy),
            byref(out),
        )
        return Plan(gamma, value, q, policy, **take_json(out))

    def __iter__(self) -> Iterator[tuple[int, int, int, float, float]]:
        """(state, action, next state, probability, reward) of every transition."""
        bounds = self.offsets.astype(np.int64)
        rows = np.repeat(np.arange(len(bounds) - 1), bounds[1:] - bounds[:-1]).tolist()
        entries = zip(rows, self.next.tolist(), self.probability.tolist(), strict=True)
        for row, after, p in entries:
            state, action = divmod(row, self.n_actions)
            yield state, action, after, p, float(self.reward[state, action])

    def to_pandas(self) -> pandas.DataFrame:
        """A table with a row for every transition."""
        import pandas

        return pandas.DataFrame(
            list(self), columns=["state", "action", "next", "probability", "reward"]
        )

    def to_networkx(self) -> networkx.MultiDiGraph[int]:
        """A graph whose edges are keyed by action, with probability and reward."""
        import networkx

        graph: networkx.MultiDiGraph[int] = networkx.MultiDiGraph()
        for state in range(self.n_states):
            graph.add_node(state, terminal=bool(self.terminal[state]))
        for state, action, after, p, reward in self:
            graph.add_edge(state, after, key=action, action=action, probability=p, reward=reward)
        return graph

    def __repr__(self) -> str:
        return (
            f"<psifold.Model: {self.n_states} states, {self.n_actions} actions, "
            f"{len(self.next)} transitions>"
        )


class Quotient:
    """The coarsest exact partition of a finite model, and the model over its blocks."""

    labels: npt.NDArray[np.int32]  #: (states) the block of each

    def __init__(self, session: Session, pointer: c_void_p) -> None:
        self._handle = Handle(session, pointer, "flat_quotient_free")
        where = c_void_p()
        n = int(lib.flat_quotient_labels(pointer, byref(where)))
        self.labels = view(self._handle, where.value, n, np.int32)
        self.summary: dict[str, Any] = session.text("flat_quotient_summary", pointer)

    @property
    def n_states(self) -> int:
        """How many blocks there are."""
        return int(self.summary["blocks"])

    @cached_property
    def model(self) -> Model:
        """The model over the blocks."""
        return Model._of(self._handle, "flat_quotient_model")

    def plan(self, gamma: float = 0.95, **options: Any) -> Plan:
        """Values and best actions of the blocks."""
        return self.model.plan(gamma, **options)

    def __repr__(self) -> str:
        return f"<psifold.Quotient: {len(self.labels)} states in {self.n_states} blocks>"


def quotient(
    model: Mapping[Any, Any] | Sequence[Any] | str | os.PathLike[str],
    *,
    tolerance: float = 0.0,
    epsilon: float = 0.0,
    gamma: float = 0.4,
    ignore_actions: bool = False,
    labels: str | None = None,
    rewards: str | None = None,
    threads: int = 0,
) -> Quotient:
    """Folds a finite model into the fewest states, exactly.

    ``model`` is Gymnasium's table ``P[state][action] = [(probability, next, reward, terminated),
    …]``, or a path to a .drn, .umb, .tra or .json. With ``epsilon``, the paper's Algorithm 1
    answers instead, by successor features within it.

    >>> import psifold
    >>> stay, go = [(1.0, 0, 0.0, False)], [(1.0, 2, 1.0, True)]
    >>> psifold.quotient({0: {0: stay, 1: go}, 1: {0: [(1.0, 1, 0.0, False)], 1: go}, 2: {}})
    <psifold.Quotient: 3 states in 2 blocks>
    """
    options: dict[str, Any] = {"tolerance": float(tolerance), "ignore_actions": ignore_actions}
    options |= {"epsilon": float(epsilon), "gamma": float(gamma)}
    if labels is not None:
        options["labels"] = labels
    if rewards is not None:
        options["rewards"] = rewards
    text = as_json(options)
    session, out = Session(threads), c_void_p()
    if isinstance(model, (str, os.PathLike)):
        session.work("flat_quotient_find", encoded(Path(model)), text, byref(out))
        return Quotient(session, out)
    table = dict(enumerate(model)) if isinstance(model, Sequence) else model
    file = os.memfd_create("psifold-model")  # the library's own reader takes it from there
    try:
        with open(file, "wb", closefd=False) as stream:
            stream.write(as_json(table))
        session.work("flat_quotient_find", f"/proc/self/fd/{file}".encode(), text, byref(out))
    finally:
        os.close(file)
    return Quotient(session, out)
