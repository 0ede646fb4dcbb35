"""The same as scikit-learn has it: an estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from psifold.progress import Watcher
from psifold.run import Run, cluster


class RewardPredictiveClusterer(ClusterMixin, BaseEstimator):
    """Reward-predictive clustering with scikit-learn's conventions.

    ``fit`` takes what ``psifold.cluster`` takes: trajectories, not a matrix, since what tells
    states apart is what follows them. ``predict`` takes observations.

    >>> import psifold
    >>> data = psifold.generate("column-world", episodes=300)
    >>> found = psifold.RewardPredictiveClusterer(seed=0).fit(data)
    >>> found.n_states_, found.predict(data.observations[:3]).shape
    (4, (3,))
    """

    run_: Run
    labels_: npt.NDArray[np.int32]
    n_states_: int
    verdict_: str

    def __init__(
        self,
        *,
        method: str = "evidence",
        approximator: str = "auto",
        seed: int = 0,
        threads: int = 0,
        key: str | None = None,
        max_latent_states: int | None = None,
        min_confidence: float = 0.0,
        options: dict[str, Any] | None = None,
        progress: Watcher = False,
    ) -> None:
        self.method = method
        self.approximator = approximator
        self.seed = seed
        self.threads = threads
        self.key = key
        self.max_latent_states = max_latent_states
        self.min_confidence = min_confidence
        self.options = options
        self.progress = progress

    def fit(self, X: Any, y: Any = None) -> RewardPredictiveClusterer:
        """Clusters trajectories; y is not looked at."""
        options: dict[str, Any] = {
            "method": self.method,
            "approximator": self.approximator,
            **(self.options or {}),
        }
        if self.max_latent_states is not None:
            options["max_latent_states"] = self.max_latent_states
        self.run_ = cluster(
            X,
            seed=self.seed,
            threads=self.threads,
            key=self.key,
            progress=self.progress,
            **options,
        )
        self.labels_ = self.run_.labels
        self.n_states_ = self.run_.n_states
        self.verdict_ = self.run_.verdict
        return self

    def predict(self, X: Any) -> npt.NDArray[np.int32]:
        """The latent states of observations (n, …); −1: unlike anything seen."""
        check_is_fitted(self)
        return self.run_.predict(X, min_confidence=self.min_confidence)

    def fit_predict(self, X: Any, y: Any = None, **_: Any) -> npt.NDArray[np.int32]:
        """The labels of the trajectories' own observations."""
        return self.fit(X).labels_
