"""The C library: its functions as python/native/flat.h declares them, and sessions to call them in.

Nothing here decides anything. Every call lets go of the interpreter's lock; long ones run in a
thread of their own, so that the one that asked can draw a bar and hear Ctrl-C.
"""

from __future__ import annotations

import ctypes
import json
import logging
import operator
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from ctypes import (
    POINTER,
    byref,
    c_char,
    c_char_p,
    c_double,
    c_float,
    c_int,
    c_int32,
    c_size_t,
    c_uint64,
    c_void_p,
)
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from psifold.errors import BY_STATUS, Interrupted, PsifoldError, PsifoldWarning, UsageError
from psifold.progress import Bar, Progress

log = logging.getLogger("psifold")

MAX_RANK = 4
TEXT = 512
#: psi_dtype, in the order of PSI_DTYPE_TABLE
DTYPES = [np.dtype(name) for name in ("uint8", "int32", "int64", "float32", "float64")]


class ProgressRecord(ctypes.Structure):
    _fields_ = [
        ("phase", c_char * 64),
        ("done", c_uint64),
        ("total", c_uint64),
        ("seconds", c_double),
        ("seconds_left", c_double),
        ("refinements", c_uint64),
    ]


class Message(ctypes.Structure):
    _fields_ = [("level", c_int32), ("text", c_char * TEXT)]


class Step(ctypes.Structure):
    _fields_ = [
        ("clusters", c_size_t),
        ("looked_at", c_size_t),
        ("ignored", c_double),
        ("agreement", c_double),
        ("gap", c_double),
        ("epsilon", c_double),
        ("held_out_error", c_double),
        ("perfect", c_double),
        ("seconds", c_double),
    ]


class Columns(ctypes.Structure):
    _fields_ = [
        ("n_episodes", c_size_t),
        ("n_transitions", c_size_t),
        ("n_observations", c_size_t),
        ("n_actions", c_size_t),
        ("dtype", c_int32),
        ("rank", c_size_t),
        ("dim", c_size_t * MAX_RANK),
        ("observations", c_void_p),
        ("actions", c_void_p),
        ("rewards", c_void_p),
        ("episode_offsets", c_void_p),
        ("terminated", c_void_p),
        ("truncated", c_void_p),
        ("final_missing", c_void_p),
        ("latent_states", c_void_p),
        ("observation_key", c_char_p),
    ]


class ModelRecord(ctypes.Structure):
    _fields_ = [
        ("n_states", c_size_t),
        ("n_actions", c_size_t),
        ("n_entries", c_size_t),
        ("offsets", c_void_p),
        ("next", c_void_p),
        ("probability", c_void_p),
        ("reward", c_void_p),
        ("terminal", c_void_p),
    ]


_S = c_void_p  # a session; every other handle is a c_void_p as well
_OUT = POINTER(c_void_p)
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "psi_version": (c_char_p, []),
    "psi_status_name": (c_char_p, [c_int]),
    "psi_status_meaning": (c_char_p, [c_int]),
    "flat_session_new": (c_int, [c_int, c_size_t, _OUT]),
    "flat_session_free": (None, [_S]),
    "flat_error": (c_char_p, [_S]),
    "flat_cancel": (None, [_S]),
    "flat_progress_get": (None, [_S, POINTER(ProgressRecord)]),
    "flat_message_take": (c_int, [_S, POINTER(Message)]),
    "flat_steps": (c_size_t, [_S, c_size_t, c_void_p]),
    "flat_labels": (c_size_t, [_S, c_size_t, c_void_p]),
    "flat_text_free": (None, [c_void_p]),
    "flat_data_over": (c_int, [_S, POINTER(Columns), _OUT]),
    "flat_data_read": (c_int, [_S, POINTER(c_char_p), c_size_t, c_char_p, _OUT]),
    "flat_data_generate": (c_int, [_S, c_char_p, c_uint64, c_uint64, _OUT]),
    "flat_data_free": (None, [_S, c_void_p]),
    "flat_data_columns": (None, [c_void_p, POINTER(Columns)]),
    "flat_data_gather": (c_int, [_S, c_void_p, c_void_p, c_size_t, c_void_p]),
    "flat_data_summary": (c_int, [_S, c_void_p, _OUT]),
    "flat_data_save": (c_int, [_S, c_void_p, c_char_p, c_char_p, c_int]),
    "flat_cluster_options": (c_int, [_S, _OUT]),
    "flat_cluster": (
        c_int,
        [_S, c_void_p, c_char_p, c_uint64, c_char_p, c_int, POINTER(c_char_p), c_size_t],
    ),
    "flat_run_load": (c_int, [_S, c_char_p, _OUT]),
    "flat_run_free": (None, [_S, c_void_p]),
    "flat_run_labels": (c_size_t, [c_void_p, _OUT]),
    "flat_run_model": (None, [c_void_p, POINTER(ModelRecord)]),
    "flat_run_predict": (
        c_int,
        [_S, c_void_p, POINTER(Columns), c_double, c_void_p, c_void_p],
    ),
    "flat_run_predict_data": (
        c_int,
        [_S, c_void_p, c_void_p, c_double, c_void_p, c_void_p],
    ),
    "flat_run_network": (c_int, [_S, c_void_p, _OUT]),
    "flat_run_tensor": (c_int, [_S, c_void_p, c_size_t, POINTER(c_float)]),
    "flat_run_export": (c_int, [_S, c_void_p, c_char_p]),
    "flat_run_data": (c_int, [_S, c_void_p, _OUT]),
    "flat_report": (c_int, [_S, c_void_p, c_void_p, c_char_p, c_char_p, c_double, _OUT]),
    "flat_plan": (
        c_int,
        [_S, POINTER(ModelRecord), c_char_p, c_void_p, c_void_p, c_void_p, _OUT],
    ),
    "flat_quotient_find": (c_int, [_S, c_char_p, c_char_p, _OUT]),
    "flat_quotient_free": (None, [_S, c_void_p]),
    "flat_quotient_labels": (c_size_t, [c_void_p, _OUT]),
    "flat_quotient_model": (None, [c_void_p, POINTER(ModelRecord)]),
    "flat_quotient_summary": (c_int, [_S, c_void_p, _OUT]),
}


def _open() -> ctypes.CDLL:
    """Loads the library that lies beside this file.

    OpenBLAS starts a thread for every processor this thread may run on, as soon as it is loaded.
    psifold has threads of its own, so there is one processor while it looks.
    """
    path = os.environ.get("PSIFOLD_FLAT") or str(Path(__file__).parent / "libpsifold_flat.so")
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    if allowed:
        os.sched_setaffinity(0, {min(allowed)})
    try:
        library = ctypes.CDLL(path)  # its symbols, and those of its HDF5, stay its own
    finally:
        if allowed:
            os.sched_setaffinity(0, allowed)
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


lib = _open()


def version() -> str:
    """The version of the C library."""
    return str(lib.psi_version().decode())


def status_names() -> list[str]:
    """The names of all statuses, in the order of the one table."""
    names: list[str] = []
    while True:
        name = lib.psi_status_name(len(names)).decode()
        if name == "PSI_?":
            return names
        names.append(name)


class Session:
    """A context of the library, used by one thread at a time.

    It survives a fork: the child makes itself a new context, since threads are not inherited.
    """

    def __init__(self, threads: int = 0, max_memory: int = 0) -> None:
        self.threads = whole("threads", threads)
        self.max_memory = whole("max_memory", max_memory)
        self.lock = threading.RLock()
        self._new()

    def _new(self) -> None:
        out = c_void_p()
        status = lib.flat_session_new(self.threads, self.max_memory, byref(out))
        if status:
            raise _error(status, lib.psi_status_meaning(status).decode())
        self.pid = os.getpid()
        self._handle = out
        self.cancelled = False
        self._finalizer = weakref.finalize(self, _free_session, self.pid, out)

    @property
    def handle(self) -> c_void_p:
        if self.pid != os.getpid():
            self._finalizer.detach()
            self.lock = threading.RLock()
            self._new()
        return self._handle

    def ready(self) -> c_void_p:
        """The handle for another call: a context that was cancelled stays so, and is replaced."""
        if self.cancelled:
            self._finalizer()
            self._new()
        return self.handle

    def check(self, status: int) -> None:
        """Raises the exception of a status, with the library's sentence."""
        self.tell()
        if status:
            error = _error(status, lib.flat_error(self.handle).decode(errors="replace"))
            self.cancelled |= isinstance(error, Interrupted)
            raise error

    def tell(self) -> None:
        """Passes on what the library had to say: warnings as warnings, notes to the log."""
        message = Message()
        while lib.flat_message_take(self.handle, byref(message)):
            text = message.text.decode(errors="replace")
            if message.level:
                warnings.warn(text, PsifoldWarning, stacklevel=4)
            else:
                log.info(text)

    def call(self, name: str, *arguments: Any) -> None:
        """A short call, in this thread."""
        with self.lock:
            self.check(getattr(lib, name)(self.ready(), *arguments))

    def text(self, name: str, *arguments: Any) -> Any:
        """A short call whose last argument is JSON text to be had."""
        out = c_void_p()
        self.call(name, *arguments, byref(out))
        return take_json(out)

    def work(
        self,
        name: str,
        *arguments: Any,
        watch: Callable[[Progress], object] | None = None,
    ) -> None:
        """A long call, in a thread of its own, while this one watches and hears Ctrl-C."""
        with self.lock:
            handle, function = self.ready(), getattr(lib, name)
            status = 0
            refused: Exception | None = None
            done = threading.Event()

            def run() -> None:
                nonlocal status, refused
                try:
                    status = function(handle, *arguments)
                except Exception as error:  # of ctypes, which does not take the arguments
                    refused = error
                finally:
                    done.set()

            threading.Thread(target=run, name=f"psifold {name}", daemon=True).start()
            try:
                while not done.wait(0.1):
                    if watch:
                        watch(self.progress())
            except BaseException:
                lib.flat_cancel(handle)
                self.cancelled = True
                _wait(done)
                if not _is_cancelled(status):
                    self.check(status)
                raise
            finally:
                if isinstance(watch, Bar):
                    watch.close()
            if refused:
                raise refused
            self.check(status)

    def progress(self) -> Progress:
        """How far it is."""
        record = ProgressRecord()
        lib.flat_progress_get(self.handle, byref(record))
        return Progress(
            record.phase.decode(errors="replace"),
            record.done,
            record.total,
            record.seconds,
            record.seconds_left,
            record.refinements,
        )

    def steps(self) -> list[dict[str, Any]]:
        """The refinements that a clustering has finished."""
        n = lib.flat_steps(self.handle, 0, None)
        steps = (Step * max(n, 1))()
        lib.flat_steps(self.handle, n, steps)
        names = [field[0] for field in Step._fields_]
        return [{name: getattr(step, name) for name in names} for step in steps[:n]]

    def labels(self) -> npt.NDArray[np.int32] | None:
        """The labels of the last of them."""
        n = lib.flat_labels(self.handle, 0, None)
        labels = np.empty(n, np.int32)
        lib.flat_labels(self.handle, n, address(labels))
        return labels if n else None


def _wait(done: threading.Event) -> None:
    """Until the library has stopped, however often Ctrl-C is pressed: it works on our memory."""
    while True:
        try:
            done.wait()
            return
        except KeyboardInterrupt:
            continue


def _is_cancelled(status: int) -> bool:
    return bool(lib.psi_status_name(status) == b"PSI_ECANCELLED")


def _error(status: int, sentence: str) -> PsifoldError | Interrupted:
    return BY_STATUS[lib.psi_status_name(status).decode()](sentence)


def _free_session(pid: int, handle: c_void_p) -> None:
    if pid == os.getpid():
        lib.flat_session_free(handle)


class Handle:
    """Something of the library's, given back when nobody refers to it any more. It keeps alive what
    it stands on."""

    def __init__(self, session: Session, pointer: c_void_p, free: str, keep: object = None) -> None:
        self.session, self.pointer, self.keep = session, pointer, keep
        weakref.finalize(self, _release, os.getpid(), session, pointer, free)


def _release(pid: int, session: Session, pointer: c_void_p, free: str) -> None:
    if pid == os.getpid():
        getattr(lib, free)(session.handle, pointer)


class _View:
    """Memory of an owner's, for numpy."""

    def __init__(self, owner: object, where: int, shape: tuple[int, ...], dtype: Any) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "data": (where, True),
            "shape": shape,
            "typestr": np.dtype(dtype).str,
            "version": 3,
        }


def view(owner: object, where: int | None, shape: int | tuple[int, ...], dtype: Any) -> Any:
    """An array over memory of an owner's, who lives as long as the array; it cannot be written."""
    shape = (shape,) if isinstance(shape, int) else shape
    if not where or 0 in shape:
        return np.empty(shape, dtype)
    return np.asarray(_View(owner, where, shape, dtype))


def address(array: npt.NDArray[Any] | None) -> int | None:
    """Where an array's memory begins."""
    return None if array is None else int(array.__array_interface__["data"][0])


def as_json(options: Mapping[Any, Any]) -> bytes:
    """Options as the library reads them; numpy's numbers are numbers."""
    return json.dumps(options, default=_number).encode()


def _number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise UsageError(f"{value!r} is neither a number nor a word")


def whole(name: str, value: Any) -> int:
    """A whole number that C takes: ctypes would let negative ones pass as large ones."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if not 0 <= number < 1 << 64:
        raise UsageError(f"{name} is a whole number from 0 on, not {value!r}")
    return number


def take_json(out: c_void_p) -> Any:
    """What JSON text of the library's says; the text is given back."""
    text = ctypes.string_at(out.value or 0)
    lib.flat_text_free(out)
    return json.loads(text)


def encoded(path: str | os.PathLike[str] | None) -> bytes | None:
    """A path as C has it."""
    return None if path is None else os.fsencode(path)


def encoded_list(paths: Sequence[str | os.PathLike[str]]) -> tuple[Any, int]:
    """Paths as C has them, and how many."""
    return (c_char_p * len(paths))(*(os.fsencode(path) for path in paths)), len(paths)
