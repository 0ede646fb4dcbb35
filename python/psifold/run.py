"""Clustering, and what comes out of it: a run."""

from __future__ import annotations

import html
import json
import os
import shutil
import tempfile
import weakref
from ctypes import byref, c_void_p
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast, overload

import numpy as np
import numpy.typing as npt

from psifold._native import (
    Handle,
    Session,
    address,
    as_json,
    encoded,
    encoded_list,
    lib,
    take_json,
    view,
    whole,
)
from psifold.data import Data, Trajectories, as_trajectories, describe, plain_array
from psifold.errors import Interrupted, MissingError, UsageError
from psifold.model import Model, Plan
from psifold.progress import Watcher, watcher

if TYPE_CHECKING:
    import torch
    from typing_extensions import Unpack

    from psifold.environments import LatentEnv

NEW, REPLACE, RESUME = range(3)
AT_ONCE = 4096  # observations that are asked about without a thread of their own


class ClusterOptions(TypedDict, total=False):
    """The options of ``psifold cluster``; a test holds them against the library's table."""

    method: Literal["evidence", "successor-features"]
    approximator: Literal["auto", "table", "mlp", "cnn", "resnet18"]
    budget: float | str
    stack: int
    paper: Literal["none", "column-world", "combination-lock"]
    refine: Literal["recluster", "split"]
    fine_tune: bool
    heads: bool
    auxiliary: bool
    dropout: bool
    smooth: bool
    norm: Literal["l2", "l1"]
    cache: Literal["auto", "full", "half"]
    gamma: float
    epsilon_reward: float
    epsilon_sf: float
    filter: float
    max_refinements: int
    max_latent_states: int
    hidden: int
    trunk_steps: int
    head_steps: int
    representation_steps: int
    shift: int
    learning_rate: float
    batch: int
    reward_epochs: int
    sf_epochs: int
    representation_epochs: int


def cluster_options() -> dict[str, dict[str, str]]:
    """All options of ``cluster``: for each its default, what it takes, and what it is.

    >>> from psifold.run import cluster_options
    >>> cluster_options()["method"]["default"]
    'evidence'
    """
    options: dict[str, dict[str, str]] = Session(1).text("flat_cluster_options")
    return options


def cluster(
    data: Data,
    *,
    seed: int = 0,
    output: str | os.PathLike[str] | None = None,
    replace: bool = False,
    resume: bool = False,
    key: str | None = None,
    threads: int = 0,
    max_memory: int = 0,
    progress: Watcher = None,
    **options: Unpack[ClusterOptions],
) -> Run:
    """Finds the reward-predictive latent states of a data set.

    ``data`` may be trajectories, a path or a list of them (files that are one data set), a Minari
    data set or a mapping of arrays; ``key`` is the entry of a Dict observation. ``output`` is where
    the run folder goes (without it, a temporary one that goes with the run). Ctrl-C stops at the
    next safe point and raises ``Interrupted``, which keeps what was found and says how to go on.
    Other options are those of the command.

    >>> import psifold
    >>> data = psifold.generate("column-world", episodes=300)
    >>> run = psifold.cluster(data, seed=1)
    >>> run
    <psifold.Run: 4 latent states, certain>
    >>> run.labels[:5].dtype, run.advice
    (dtype('int32'), [])
    """
    if replace and resume:
        raise UsageError("replace starts anew and resume goes on: not both")
    if resume and output is None:
        raise UsageError("resume needs output, the folder of the run that was interrupted")
    trajectories = as_trajectories(data, key)
    folder = Path(tempfile.mkdtemp(prefix="psifold-") if output is None else output)
    mode = RESUME if resume else REPLACE if replace or output is None else NEW
    session = Session(threads, max_memory)
    try:
        session.work(
            "flat_cluster",
            trajectories._handle.pointer,
            as_json(options),
            whole("seed", seed),
            encoded(folder),
            mode,
            *encoded_list(trajectories.paths),
            watch=watcher(progress),
        )
    except BaseException as stop:
        if not (folder / "checkpoint").exists():
            if output is None:
                shutil.rmtree(folder, ignore_errors=True)
        elif isinstance(stop, KeyboardInterrupt):
            raise _interrupted(session, folder, str(stop)) from None
        raise
    run = Run(folder, data=trajectories, threads=threads)
    if output is None:
        weakref.finalize(run, _remove, os.getpid(), folder)
    return run


def _remove(pid: int, folder: Path) -> None:
    if pid == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)


def _interrupted(session: Session, folder: Path, why: str) -> Interrupted:
    return Interrupted(
        f"{why or 'stopped on request'}; cluster(data, output={str(folder)!r}, resume=True), with "
        "the same options, goes on from here",
        folder,
        session.steps(),
        session.labels(),
    )


def load(folder: str | os.PathLike[str], *, threads: int = 0) -> Run:
    """Reads a run folder, of ``cluster`` or of the command. Every file is compared with its
    checksum."""
    return Run(Path(folder), threads=threads)


class Run:
    """What a clustering has found.

    Attributes that are arrays are views of the library's memory: they cost nothing, keep what they
    show alive, and cannot be written.
    """

    folder: Path  #: where it is, as plain data
    manifest: dict[str, Any]  #: all that the run says about itself
    labels: npt.NDArray[np.int32]  #: (observations) the latent state of each; −1: ignored

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        data: Trajectories | None = None,
        threads: int = 0,
    ) -> None:
        self.folder = Path(folder)
        self._session = Session(threads)
        out = c_void_p()
        self._session.call("flat_run_load", encoded(self.folder), byref(out))
        self._handle = Handle(self._session, out, "flat_run_free")
        self._data = data
        self._no_data: str | None = None  # why there are none
        self.manifest = json.loads((self.folder / "manifest.json").read_text())
        where = c_void_p()
        n = int(lib.flat_run_labels(out, byref(where)))
        self.labels = view(self._handle, where.value, n, np.int32)

    # ---- what was found ----

    @property
    def n_states(self) -> int:
        """How many latent states there are; state 0 is the terminal one if ``has_terminal``."""
        return int(self.manifest["result"]["latent_states"])

    @property
    def has_terminal(self) -> bool:
        """Is latent state 0 the terminal one?"""
        return bool(self.manifest["result"]["has_terminal"])

    @property
    def verdict(self) -> str:
        """How sure that is: certain, undetermined, not-markov, no-small-answer,
        nothing-to-predict or not-asked."""
        return str(self.manifest["result"]["verdict"])

    @property
    def verdict_sentence(self) -> str:
        """The same as a sentence that says what it rests on."""
        return str(self.manifest["result"]["verdict_sentence"])

    @property
    def stopped(self) -> bool:
        """Did its budget end before everything was done? ``cluster(..., resume=True)`` goes on."""
        return bool(self.manifest["result"].get("stopped", False))

    @property
    def failure(self) -> str | None:
        """Why a later step failed, if one did: what was found before it is here, without it."""
        return cast("str | None", self.manifest["result"].get("failure"))

    @property
    def margin(self) -> float | None:
        """Nats by which the two most similar latent states are apart."""
        return cast("float | None", self.manifest["result"]["margin"])

    @property
    def advice(self) -> list[str]:
        """What to collect to become surer, in plain words."""
        return [str(sentence) for sentence in self.manifest["result"]["advice"]]

    @property
    def undetermined(self) -> list[dict[str, Any]]:
        """The same as data: of what ``kind`` each is, of which latent ``state``, and which
        ``other`` state, action or number of observations; ``psifold cluster --json`` has the
        same."""
        return cast("list[dict[str, Any]]", self.manifest["result"]["doubts"])

    @cached_property
    def confidence(self) -> npt.NDArray[np.float32] | None:
        """(observations) the probability of each label; None where the method has none."""
        path = self.folder / "confidence.npy"
        return np.load(path, allow_pickle=False) if path.exists() else None

    @cached_property
    def refinements(self) -> list[dict[str, Any]]:
        """The way there, a dictionary for each refinement."""
        lines = (self.folder / "refinements.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    @cached_property
    def model(self) -> Model:
        """The small MDP over the latent states."""
        return Model._of(self._handle, "flat_run_model")

    @property
    def data(self) -> Trajectories | None:
        """What it was made from; None if that is not where it was, or has changed."""
        if self._data is None and self._no_data is None:
            session, out = Session(self._session.threads), c_void_p()
            try:
                session.work("flat_run_data", self._handle.pointer, byref(out))
            except MissingError as gone:
                self._no_data = str(gone)
                return None
            handle = Handle(session, out, "flat_data_free")
            self._data = Trajectories._from(handle, [Path(p).resolve() for p in self._data_paths])
        return self._data

    @property
    def _data_paths(self) -> list[str]:
        of = self.manifest["data"]
        kept = of["paths"] if "paths" in of else of.get("path", "").split("\n")  # as it used to be
        return cast("list[str]", kept)

    @property
    def observation_key(self) -> str | None:
        """The entry of a Dict observation that it was made from."""
        return cast("str | None", self.manifest["data"].get("observation_key"))

    @property
    def stack(self) -> int:
        """How many observations, the last ones of an episode, it sees as one."""
        return int(self.manifest["options"].get("stack", 1))

    # ---- other observations ----

    @overload
    def predict(
        self,
        observations: Any,
        return_confidence: Literal[False] = False,
        *,
        min_confidence: float = 0.0,
        progress: Watcher = None,
    ) -> npt.NDArray[np.int32]: ...

    @overload
    def predict(
        self,
        observations: Any,
        return_confidence: Literal[True],
        *,
        min_confidence: float = 0.0,
        progress: Watcher = None,
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]: ...

    def predict(
        self,
        observations: Any,
        return_confidence: bool = False,
        *,
        min_confidence: float = 0.0,
        progress: Watcher = None,
    ) -> npt.NDArray[np.int32] | tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        """The latent states of observations (n, …), and how probable each is. −1 is unlike
        anything seen, or less probable than ``min_confidence``. ``Trajectories`` are labelled as
        ``psifold assign`` does it: where episodes end is known.

        A run with ``stack`` above 1 takes an array for one episode, from its first observation on;
        of several, give ``Trajectories``, or rows that are stacked already: single numbers as
        (n, stack), vectors as (n, stack · D), everything else as (n, stack, …), oldest first.

        >>> import numpy as np, psifold
        >>> run = psifold.cluster(psifold.generate("column-world", episodes=300))
        >>> run.predict(np.array([0, 4, 999])).tolist()
        [1, 1, -1]
        """
        asked: Any
        if isinstance(observations, Trajectories):
            ask, asked = "flat_run_predict_data", observations._handle.pointer
            n = observations.n_transitions + observations.n_episodes
        else:
            rows = plain_array("observations", observations)
            columns = describe(rows)
            columns.n_episodes = int(self._is_single(rows.shape[1:]))
            ask, asked, n = "flat_run_predict", byref(columns), len(rows)
        labels = np.empty(n, np.int32)
        confidence = np.empty(n, np.float32) if return_confidence else None
        arguments = (
            self._handle.pointer,
            asked,
            float(min_confidence),
            address(labels),
            address(confidence),
        )
        if n <= AT_ONCE:
            self._session.call(ask, *arguments)
        else:
            self._session.work(ask, *arguments, watch=watcher(progress))
        return labels if confidence is None else (labels, confidence)

    def _is_single(self, shape: tuple[int, ...]) -> bool:
        """Is this the shape of one observation of several that the run sees as one?"""
        return self.stack > 1 and list(shape) == self.manifest["data"]["observation_shape"]

    # ---- what it is good for ----

    def plan(self, gamma: float = 0.95, **options: Any) -> Plan:
        """Values and best actions of the latent states."""
        return self.model.plan(gamma, **options)

    def start(self) -> npt.NDArray[np.float64]:
        """How often episodes of its data begin in each latent state, as shares."""
        data = self.data
        if data is None:
            raise MissingError(
                f"the data of {self.folder} are not there to say where episodes begin"
            )
        firsts = data.episode_offsets[:-1].astype(np.int64) + np.arange(data.n_episodes)
        labels = self.labels[firsts]
        counts = np.bincount(labels[labels >= 0], minlength=self.n_states).astype(float)
        if counts.sum() == 0:
            raise MissingError("no episode begins in a known latent state")
        return cast("npt.NDArray[np.float64]", counts / counts.sum())

    def to_env(self, **options: Any) -> LatentEnv:
        """The latent MDP as a Gymnasium environment."""
        from psifold.environments import LatentEnv

        options.setdefault("start", self.start())
        return LatentEnv(self.model, **options)

    def to_torch(self) -> torch.nn.Module:
        """The representation as a torch module: raw observations in, logits of the latent states
        out."""
        from psifold.representation import to_torch

        return to_torch(self)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Writes the network (.onnx, .safetensors) or the latent MDP (.drn, .umb, .tra, .json),
        as the name says."""
        self._session.call("flat_run_export", self._handle.pointer, encoded(path))

    def save(self, folder: str | os.PathLike[str]) -> Run:
        """Copies the run folder; the copy is returned as a run."""
        shutil.copytree(self.folder, folder)
        return Run(folder, data=self._data, threads=self._session.threads)

    def report(
        self, path: str | os.PathLike[str] = "report.html", *, gamma: float = 0.95
    ) -> dict[str, Any]:
        """Writes the page of the run, one file for any browser. Figures that need gnuplot or
        Graphviz are left out where these are not installed, and the page says so."""
        out = c_void_p()
        data = self.data
        Session(self._session.threads).work(
            "flat_report",
            self._handle.pointer,
            None if data is None else data._handle.pointer,
            encoded(path),
            None if self._no_data is None else self._no_data.encode(),
            gamma,
            byref(out),
        )
        return cast("dict[str, Any]", take_json(out))

    def __repr__(self) -> str:
        return f"<psifold.Run: {self.n_states} latent states, {self.verdict}>"

    def __str__(self) -> str:
        lines = [f"{self.n_states} latent states", f"  {self.verdict_sentence}"]
        return "\n".join(lines + [f"    {sentence}" for sentence in self.advice])

    def _repr_html_(self) -> str:
        with tempfile.TemporaryDirectory(prefix="psifold-") as room:
            page = Path(room) / "report.html"
            self.report(page)
            text = html.escape(page.read_text(), quote=True)
        return (
            f'<iframe srcdoc="{text}" title="psifold: {html.escape(repr(self)[1:-1])}" '
            'style="width: 100%; height: 600px; border: 1px solid #8888"></iframe>'
        )

    def __deepcopy__(self, memo: Any) -> Run:
        return self  # nothing in it ever changes

    def __reduce__(self) -> Any:
        """Another process of this machine reads the folder, which must still be there."""
        return load, (str(self.folder.resolve()),)
