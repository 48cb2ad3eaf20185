"""Transport costs to fitted histograms, for pipelines of scikit-learn."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .._types import Matrix
from ..api.pairwise import pairwise
from ..arguments import cost_matrix
from ..engine.goal import EXACT_RTOL
from ..errors import InvalidProblem, MissingExtra

try:
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils import Tags
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise MissingExtra("PairwiseTransport", "scikit-learn", "sklearn") from error


class PairwiseTransport(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn histograms into their transport costs to the fitted histograms.

    The costs serve methods that take precomputed distances, such as nearest neighbours.

    Parameters
    ----------
    M : (d, d) array-like, optional
        Cost between the bins; ``|i - j|`` by default. Its units are those of the result.
    rtol : float, optional
        Relative gap of every cost; exact by default.
    n_threads : int, optional
        Threads to use; one per core by default.

    Attributes
    ----------
    histograms_ : (n, d) array
        The fitted histograms, of total 1.
    cost_ : (d, d) array
        The cost between the bins.

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> H, y = np.eye(6), [0, 0, 0, 1, 1, 1]
    >>> neighbours = KNeighborsClassifier(1, metric="precomputed")
    >>> model = make_pipeline(epsilot.PairwiseTransport(), neighbours).fit(H, y)
    >>> model.predict([[0.5, 0.5, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1]])
    array([0, 1])
    """

    def __init__(
        self,
        M: ArrayLike | None = None,
        *,
        rtol: float | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.M = M
        self.rtol = rtol
        self.n_threads = n_threads

    def fit(self, X: ArrayLike, y: object = None) -> PairwiseTransport:
        """Keep histograms.

        Parameters
        ----------
        X : (n, d) array-like
            Histograms as rows: nonnegative masses, which are divided by their totals.
        y : ignored
            For pipelines.
        """
        self.histograms_ = self._checked(X, reset=True)
        d = self.n_features_in_
        bins = np.arange(float(d))
        cost = np.abs(bins[:, None] - bins) if self.M is None else cost_matrix(self.M)
        if cost.shape != (d, d):
            raise InvalidProblem(
                f"M has shape {cost.shape}; it must have shape ({d}, {d}), one row and one column "
                "for each bin of the histograms."
            )
        self.cost_ = np.ascontiguousarray(cost)
        return self

    def transform(self, X: ArrayLike) -> Matrix:
        """Return the (k, n) transport costs from histograms to the fitted ones.

        Parameters
        ----------
        X : (k, d) array-like
            Histograms as rows.
        """
        check_is_fitted(self)
        H = self._checked(X, reset=False)
        rtol = EXACT_RTOL if self.rtol is None else self.rtol
        found = pairwise(H, self.cost_, self.histograms_, rtol=rtol, n_threads=self.n_threads)
        return np.asarray(found.value).reshape(len(H), len(self.histograms_))

    def _checked(self, X: ArrayLike, *, reset: bool) -> Matrix:
        """Return histograms of total 1, or reject other rows."""
        H: Matrix = validate_data(self, X, reset=reset, dtype=np.float64)
        totals, is_negative = H.sum(axis=1), (H < 0).any(axis=1)
        if is_negative.any():
            raise InvalidProblem(
                f"Negative values in data passed to PairwiseTransport: row "
                f"{int(np.argmax(is_negative))} of X holds {H.min():.6g}; masses must not be "
                "negative (shift or remove them)."
            )
        if not totals.min() > 0:
            raise InvalidProblem(
                f"row {int(np.argmin(totals))} of X has no mass; a histogram needs a positive "
                "total (remove that row)."
            )
        return np.asarray(H / totals[:, None])

    def __sklearn_tags__(self) -> Tags:
        """Tell that masses are nonnegative."""
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags
