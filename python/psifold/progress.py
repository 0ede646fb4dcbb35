"""How far something is: a bar, or a function of yours."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Progress:
    """How far work is: ``done`` of ``total`` (0: not known) units of a named phase."""

    phase: str
    done: int
    total: int
    seconds: float
    seconds_left: float  #: negative while there is no estimate
    refinements: int  #: finished so far


#: ``True`` draws a bar, ``False`` nothing, ``None`` a bar where a person looks on: a terminal, or a
#: notebook. A function is called about ten times a second, in the thread that asked; what it raises
#: stops the work.
Watcher = bool | None | Callable[[Progress], object]


def somebody_looks_on() -> bool:
    """Is there a terminal or a notebook?"""
    if "ipykernel" in sys.modules:
        return True
    return bool(getattr(sys.stderr, "isatty", lambda: False)())


class Bar:
    """A tqdm bar that follows phases."""

    def __init__(self) -> None:
        self.bar: Any = None
        self.phase = ""

    def __call__(self, progress: Progress) -> None:
        if not progress.phase:
            return
        from tqdm import tqdm

        if self.bar is None:
            self.bar = tqdm(leave=False, bar_format="{desc} {percentage:3.0f}%|{bar}| {elapsed}")
        if progress.phase != self.phase:
            self.phase = progress.phase
            self.bar.reset(total=progress.total or None)
        found = f", {progress.refinements} refinements" if progress.refinements else ""
        self.bar.set_description_str(self.phase + found, refresh=False)
        self.bar.total = progress.total or None
        self.bar.n = progress.done
        self.bar.refresh()

    def close(self) -> None:
        """Takes the bar away."""
        if self.bar is not None:
            self.bar.close()


def watcher(how: Watcher) -> Callable[[Progress], object] | None:
    """What to call with progress; None for nothing."""
    if callable(how):
        return how
    wanted = somebody_looks_on() if how is None else how
    return Bar() if wanted else None
