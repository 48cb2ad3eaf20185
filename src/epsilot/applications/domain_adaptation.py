"""Domain adaptation: labelled samples, moved to where unlabelled ones are."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._types import Array, Matrix
from ..api.solve import run_request
from ..arguments import check_choice, check_count, check_least, check_options
from ..engine.result import Result
from ..errors import InvalidProblem
from ..geometry import Dense
from ..geometry.clouds import cloud_geometry
from ..metrics import MetricLike
from .extras import MissingExtra
from .maps import barycentric, interpolate
from .requests import request_of

try:
    from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
    from sklearn.neighbors import NearestNeighbors
    from sklearn.utils.validation import check_array, check_is_fitted, validate_data
except ImportError as error:
    raise MissingExtra("DomainAdapter", "scikit-learn", "sklearn") from error

#: What transport between different known classes costs, in units of the largest cost.
CLASS_BARRIER = 10.0
#: Linearisations of the class regularisation, and the smallest share of a class in them.
CLASS_STEPS = 10
CLASS_FLOOR = 1e-3


class DomainAdapter(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Move a source domain onto a target domain by optimal transport.

    A certified plan X between the samples sends each source point to the mean of its
    destinations, :math:`T(x_i) = \sum_j X_{ij} y_j / \sum_j X_{ij}`. A classifier trained on the
    transported source and its labels is then used on the target.

    Points that were not fitted move as their nearest fitted points do: their displacement is
    that of the ``n_neighbors`` nearest, by Franke and Nielson's weights, which are continuous
    and reproduce the fitted points.

    Parameters
    ----------
    X_target : (m, d) array-like, optional
        The target domain, unless it is given to ``fit``.
    y_target : (m,) array-like, optional
        Labels of the target that are known; -1 or None for the others. Transport between
        different known classes costs ten times the largest cost more.
    method : str
        A name from :func:`epsilot.methods`, or "auto".
    eps, rtol, reg, tol : float, optional
        What to reach, as in :func:`epsilot.solve`. Small ``reg`` often helps the classifier:
        it averages over the targets that are nearly as good.
    metric : str or callable
        Cost between points, as in :func:`epsilot.solve_sample`.
    class_reg : float
        Strength, in units of the cost, of a penalty on targets that receive mass from several
        classes, :math:`\sum_j b_j \sum_c \sqrt{s_{cj}}` with :math:`s_{cj}` the share of class c
        in what target j receives; needs labels of the source. It is minimised by ten transport
        problems with linearised penalty, and the certificate is that of the last one.
    new_points : {"source", "target"}
        What ``transform`` is given after ``fit``: points of the source, which it moves, or of
        the target, which it leaves where they are. Choose "target" in a Pipeline that predicts
        on the target; ``fit_transform`` moves its source either way.
    n_neighbors : int
        Fitted points that decide how a new point moves.
    stop, max_iter, max_seconds, seed : optional
        As in :func:`epsilot.solve`.
    options : dict, optional
        Options of the method.

    Attributes
    ----------
    coupling_ : (n, m) array
        The plan.
    cost_, gap_ : float
        Its value, and how far at most it is from the least.
    result_ : Result
        All that is known of the plan.
    n_iter_ : int
        Epochs of the method.
    X_source_, X_target_ : arrays
        What was fitted.
    transported_ : (n, d) array
        T of the source.

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> rng = np.random.default_rng(0)
    >>> Xs = rng.normal(size=(40, 2))
    >>> adapter = epsilot.DomainAdapter().fit(Xs, Xt=Xs + [5.0, 0.0])
    >>> bool(np.allclose(adapter.transform(Xs), Xs + [5.0, 0.0]))
    True

    References
    ----------
    Courty, Flamary, Tuia and Rakotomamonjy (2017), "Optimal transport for domain adaptation".
    Luo, Xie and Huo (2023), Appendix H.
    """

    def __init__(
        self,
        *,
        X_target: ArrayLike | None = None,
        y_target: ArrayLike | None = None,
        method: str = "auto",
        eps: float | None = None,
        rtol: float | None = None,
        reg: float | None = None,
        tol: float | None = None,
        stop: str = "certificate",
        metric: MetricLike = "sqeuclidean",
        class_reg: float = 0.0,
        new_points: str = "source",
        n_neighbors: int = 10,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        seed: int = 0,
        options: dict[str, object] | None = None,
    ) -> None:
        self.X_target = X_target
        self.y_target = y_target
        self.method = method
        self.eps = eps
        self.rtol = rtol
        self.reg = reg
        self.tol = tol
        self.stop = stop
        self.metric = metric
        self.class_reg = class_reg
        self.new_points = new_points
        self.n_neighbors = n_neighbors
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.seed = seed
        self.options = options

    # -- fitting ---------------------------------------------------------------------------

    def fit(
        self,
        Xs: ArrayLike,
        ys: ArrayLike | None = None,
        Xt: ArrayLike | None = None,
        yt: ArrayLike | None = None,
    ) -> DomainAdapter:
        """Find the plan from the source to the target.

        Parameters
        ----------
        Xs : (n, d) array-like
            Source points.
        ys : (n,) array-like, optional
            Their labels, for ``class_reg`` and for known labels of the target.
        Xt, yt : optional
            The target and its known labels, in place of those given at construction.
        """
        self._check_parameters()
        Xt, yt = (self.X_target, self.y_target) if Xt is None else (Xt, yt)
        if Xt is None:
            raise InvalidProblem(
                "there is no target; give its points as X_target=... or as fit(Xs, ys, Xt)."
            )
        try:
            self.X_source_ = _finite(validate_data(self, Xs, **_CHECKS), "Xs")
            self.X_target_ = _finite(check_array(Xt, **_CHECKS, estimator=self), "Xt")
        except OverflowError as error:
            raise InvalidProblem(f"Xs and Xt must hold numbers of float64 ({error}).") from None
        if self.X_target_.shape[1] != self.n_features_in_:
            raise InvalidProblem(
                f"Xs has {self.n_features_in_} features and Xt {self.X_target_.shape[1]}; both "
                "domains must have the same features."
            )
        labels = _labels(ys, len(self.X_source_), "ys")
        known = _labels(yt, len(self.X_target_), "yt")
        self.result_: Result = self._solve(labels, known)
        self.cost_, self.gap_ = self.result_.value, self.result_.gap
        self.n_iter_ = max(1, self.result_.n_iter)
        self.transported_ = barycentric(self.result_.plan_operator, self.X_target_)
        return self

    def _check_parameters(self) -> None:
        check_choice("new_points", self.new_points, ("source", "target"))
        check_count("n_neighbors", self.n_neighbors, 1)
        check_options(self.options)

    def _solve(self, labels: Array | None, known: Array | None) -> Result:
        """Return the plan, with what labels add to the cost."""
        request, class_reg = request_of(self), check_least("class_reg", self.class_reg, 0)
        if known is None and class_reg == 0:
            return run_request(request, cloud_geometry(self.X_source_, self.X_target_, self.metric))
        if labels is None:
            raise InvalidProblem(
                "ys is missing; class_reg and labels of the target need the labels of the source."
            )
        cost = cloud_geometry(self.X_source_, self.X_target_, self.metric, lazy=False)
        C = np.array(cost.matrix())
        if known is not None:
            C += CLASS_BARRIER * max(abs(C.max()), abs(C.min())) * _conflicts(labels, known)
        result = run_request(request, Dense(C))
        classes = labels[None, :] == np.unique(labels)[:, None]
        for _ in range(CLASS_STEPS if class_reg > 0 else 0):
            share = result.plan_operator.T @ classes.T.astype(np.float64)
            share /= share.sum(axis=1, keepdims=True)
            slope = 0.5 / np.sqrt(share + CLASS_FLOOR)
            penalty = slope.T[np.argmax(classes, axis=0)]
            result = run_request(request, Dense(C + class_reg * penalty))
        return result

    # -- moving ----------------------------------------------------------------------------

    @property
    def coupling_(self) -> Matrix:
        """The plan as an (n, m) array."""
        check_is_fitted(self)
        return self.result_.plan

    def fit_transform(
        self,
        Xs: ArrayLike,
        ys: ArrayLike | None = None,
        Xt: ArrayLike | None = None,
        yt: ArrayLike | None = None,
        **_: object,
    ) -> Matrix:
        """Fit, and return the transported source whatever ``new_points`` is."""
        self.fit(Xs, ys, Xt, yt)
        return self._moved(self.X_source_, self.X_source_, self.transported_)

    def transform(self, X: ArrayLike) -> Matrix:
        """Move points of the source to the target, or leave points of the target.

        Parameters
        ----------
        X : (k, d) array-like
            Points of the domain that ``new_points`` names.
        """
        X = self._checked(X)
        if self.new_points == "target":
            return X
        return self._moved(X, self.X_source_, self.transported_)

    def inverse_transform(self, X: ArrayLike) -> Matrix:
        """Move points of the target to the source, by the same rules.

        Parameters
        ----------
        X : (k, d) array-like
            Points of the target domain.
        """
        X = self._checked(X)
        back = barycentric(self.result_.plan_operator.T, self.X_source_)
        return self._moved(X, self.X_target_, back)

    def _checked(self, X: ArrayLike) -> Matrix:
        check_is_fitted(self)
        checks = _CHECKS | {"ensure_min_samples": 1}
        return _finite(validate_data(self, X, reset=False, **checks), "X")

    def _moved(self, X: Matrix, here: Matrix, images: Matrix) -> Matrix:
        """Return points moved as their nearest neighbours are."""
        k = min(check_count("n_neighbors", self.n_neighbors, 1) + 1, len(here))
        search = NearestNeighbors(n_neighbors=k)
        distance, index = search.fit(here).kneighbors(X)
        return X + interpolate(distance, index, images - here)


_CHECKS: dict[str, object] = {
    "dtype": np.float64,
    "ensure_min_samples": 2,
    "ensure_all_finite": False,
}


def _finite(X: Matrix, name: str) -> Matrix:
    """Return points, or say which of them is not finite."""
    bad = ~np.isfinite(X).all(axis=1)
    if bad.any():
        raise InvalidProblem(
            f"{name} holds NaN or infinity in row {int(np.argmax(bad))}; all features must be "
            "finite (impute or remove that row; inf and NaN have no distance)."
        )
    return X


def _labels(y: ArrayLike | None, n: int, name: str) -> Array | None:
    """Return labels as a vector of one entry a point, or None."""
    if y is None:
        return None
    try:
        labels = np.asarray(y)
    except ValueError:  # ragged
        labels = np.asarray(None)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.shape != (n,):
        raise InvalidProblem(
            f"{name} has shape {labels.shape}; it must hold one label for each of {n} points."
        )
    return labels


def _conflicts(labels: Array, known: Array) -> NDArray[np.bool_]:
    """Tell which pairs have different known labels."""
    is_known = np.array([label is not None and label != -1 for label in known.tolist()])
    missing = set(known[is_known].tolist()) - set(labels.tolist())
    if missing:
        raise InvalidProblem(
            f"yt holds class {min(map(str, missing))!r}, of which the source has no sample; every "
            "class of the target must occur in ys (mark unlabelled points with -1)."
        )
    return np.asarray((labels[:, None] != known[None, :]) & is_known[None, :])
