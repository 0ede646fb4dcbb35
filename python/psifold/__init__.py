"""psifold: how many states does a task really have, and which observations belong to which?

>>> import psifold
>>> data = psifold.generate("column-world", episodes=300, seed=0)
>>> run = psifold.cluster(data, seed=0)
>>> run.n_states, run.verdict
(4, 'certain')

``collect`` makes data from a Gymnasium environment; ``cluster`` takes data, paths, Minari data sets
and arrays. What else a run can do is in its own documentation, ``help(psifold.Run)``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psifold.collecting import collect
    from psifold.data import Trajectories, generate, read
    from psifold.environments import (
        LatentEnv,
        LatentObservation,
        LatentVectorObservation,
    )
    from psifold.errors import (
        DataError,
        FileError,
        FormatError,
        InternalError,
        Interrupted,
        LimitError,
        MissingError,
        NumericError,
        OutOfMemoryError,
        PsifoldError,
        PsifoldWarning,
        ShapeError,
        UnsupportedError,
        UsageError,
    )
    from psifold.estimator import RewardPredictiveClusterer
    from psifold.model import Model, Plan, Quotient, quotient
    from psifold.progress import Progress
    from psifold.run import Run, cluster, load

    __version__: str

# What is where. Nothing is loaded before it is asked for: importing psifold costs next to nothing,
# and Gymnasium, scikit-learn and torch are needed by those only who use them.
_HOMES = {
    "collecting": ["collect"],
    "data": ["Trajectories", "generate", "read"],
    "environments": ["LatentEnv", "LatentObservation", "LatentVectorObservation"],
    "errors": [
        "DataError",
        "FileError",
        "FormatError",
        "InternalError",
        "Interrupted",
        "LimitError",
        "MissingError",
        "NumericError",
        "OutOfMemoryError",
        "PsifoldError",
        "PsifoldWarning",
        "ShapeError",
        "UnsupportedError",
        "UsageError",
    ],
    "estimator": ["RewardPredictiveClusterer"],
    "model": ["Model", "Plan", "Quotient", "quotient"],
    "progress": ["Progress"],
    "run": ["Run", "cluster", "load"],
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "DataError",
    "FileError",
    "FormatError",
    "InternalError",
    "Interrupted",
    "LatentEnv",
    "LatentObservation",
    "LatentVectorObservation",
    "LimitError",
    "MissingError",
    "Model",
    "NumericError",
    "OutOfMemoryError",
    "Plan",
    "Progress",
    "PsifoldError",
    "PsifoldWarning",
    "Quotient",
    "RewardPredictiveClusterer",
    "Run",
    "ShapeError",
    "Trajectories",
    "UnsupportedError",
    "UsageError",
    "cluster",
    "collect",
    "generate",
    "load",
    "quotient",
    "read",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from psifold._native import version

        return version()
    if name not in _HOME_OF:
        raise AttributeError(f"module 'psifold' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"psifold.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME_OF])
