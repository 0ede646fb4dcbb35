"""An exception for every status of the C library; each carries its sentence.

They also are what a Python programmer would catch: a ``ShapeError`` is a ``ValueError``, a
``FileError`` an ``OSError``.

>>> import psifold
>>> try:
...     psifold.read("nowhere.npz")
... except psifold.FileError as error:
...     print(error)
nowhere.npz: cannot open: No such file or directory
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class PsifoldWarning(UserWarning):
    """Something the user should know, and that stops nothing."""


class PsifoldError(Exception):
    """What all errors of psifold have in common."""


class UsageError(PsifoldError, ValueError):
    """An option or argument is not understood."""


class ShapeError(PsifoldError, ValueError):
    """Shapes, types or sizes disagree."""


class FileError(PsifoldError, OSError):
    """A file could not be read or written."""


class FormatError(PsifoldError, ValueError):
    """A file is not in a format psifold knows, or is damaged."""


class DataError(PsifoldError, ValueError):
    """The data set contradicts itself or cannot be learnt from."""


class OutOfMemoryError(PsifoldError, MemoryError):
    """Memory ran out."""


class LimitError(PsifoldError, RuntimeError):
    """A limit was exceeded."""


class NumericError(PsifoldError, ArithmeticError):
    """A number became infinite or not a number."""


class MissingError(PsifoldError, LookupError):
    """Something that is needed is not there."""


class UnsupportedError(PsifoldError, NotImplementedError):
    """This build or this file does not support that."""


class InternalError(PsifoldError, RuntimeError):
    """A defect in psifold."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C. What was found until then is kept.

    ``folder`` holds the run as far as it got: ``psifold.cluster(data, output=folder, resume=True)``
    with the same options goes on from there. ``refinements`` and ``labels`` are those of the last
    refinement that was finished.
    """

    def __init__(
        self,
        sentence: str,
        folder: Path | None = None,
        refinements: list[dict[str, Any]] | None = None,
        labels: npt.NDArray[np.int32] | None = None,
    ) -> None:
        super().__init__(sentence)
        self.folder = folder
        self.refinements = refinements or []
        self.labels = labels


# The order of PSI_STATUS_TABLE in psifold/base.h; a test holds the two against each other.
BY_STATUS: dict[str, type[PsifoldError] | type[Interrupted]] = {
    "PSI_EUSAGE": UsageError,
    "PSI_ESHAPE": ShapeError,
    "PSI_EIO": FileError,
    "PSI_EFORMAT": FormatError,
    "PSI_EDATA": DataError,
    "PSI_ENOMEM": OutOfMemoryError,
    "PSI_ELIMIT": LimitError,
    "PSI_ENUMERIC": NumericError,
    "PSI_EMISSING": MissingError,
    "PSI_EUNSUPPORTED": UnsupportedError,
    "PSI_EINTERNAL": InternalError,
    "PSI_ECANCELLED": Interrupted,
}
