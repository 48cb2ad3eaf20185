"""Domain adaptation: transport labelled samples onto unlabelled ones."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._types import Array, Matrix
from ..api.solve import run_request
from ..arguments import check_choice, check_count, check_least, check_options
from ..engine.maps import barycentric
from ..engine.result import Result
from ..errors import InvalidProblem, MissingExtra
from ..geometry import Dense
from ..geometry.inputs import cloud_geometry
from ..labels import columns_like
from ..metrics import MetricLike
from .estimators import interpolate, request_of

try:
    from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
    from sklearn.neighbors import NearestNeighbors
    from sklearn.utils.validation import check_array, check_is_fitted, validate_data
except ImportError as error:
    raise MissingExtra("DomainAdapter", "scikit-learn", "sklearn") from error


class DomainAdapter(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Move a source domain onto a target domain by optimal transport.

    A certified plan X between the samples sends each source point to the mean of its
    destinations, :math:`T(x_i) = \sum_j X_{ij} y_j / \sum_j X_{ij}`. A classifier trained on the
    transported source and its labels is then used on the target.

    New points move like their nearest fitted points: their displacement is a mean over the
    ``n_neighbors`` nearest with Franke and Nielson's weights, which are continuous and reproduce
    the fitted points.

    Parameters
    ----------
    X_target : (m, d) array-like or "source", optional
        Target domain, unless it is passed to ``fit``. "source" is the source itself, which a plan
        with ``reg`` smooths.
    y_target : (m,) array-like, optional
        Known labels of the target; -1 or None for unknown ones. Ten times the largest cost is added
        to the cost between different known classes.
    method : str
        A name from :func:`epsilot.methods`, or "auto".
    eps, rtol, reg, tol : float, optional
        Stopping criterion, as in :func:`epsilot.solve`. A small ``reg`` often helps the classifier,
        because it averages over targets of similar cost.
    metric : str or callable
        Cost between points, as in :func:`epsilot.solve_sample`.
    class_reg : float
        Strength, in units of the cost, of a penalty on targets that receive mass from several
        classes: :math:`\sum_j b_j \sum_c \sqrt{s_{cj}}`, where :math:`s_{cj}` is the share of
        class c in the mass of target j. It needs labels of the source. Ten transport problems with
        linearised penalty are solved, and the certificate is that of the last one.
    new_points : {None, "target", "source"}
        Domain of the points passed to ``transform``. Points of the source are moved, points of the
        target are returned unchanged. By default the fitted source is moved and all other points
        are taken for points of the target, with a warning if they are not the fitted ones: choose
        "target" in a Pipeline that predicts on new points of the target, and "source" where it is
        scored on held-out points of the source. ``fit_transform`` always moves its source.
    n_neighbors : int
        Number of fitted points that determine how a new point moves.
    stop, max_iter, max_seconds, seed : optional
        As in :func:`epsilot.solve`.
    options : dict, optional
        Options of the method.

    Attributes
    ----------
    coupling_ : (n, m) array
        The plan.
    cost_, gap_ : float
        Value of the plan, and the proven bound on its error.
    result_ : Result
        Result of the solve: plan, potentials and bounds.
    n_iter_ : int
        Epochs of the method.
    X_source_, X_target_ : arrays
        Fitted points.
    transported_ : (n, d) array
        Images T(x_i) of the source points.

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> rng = np.random.default_rng(0)
    >>> Xs = rng.normal(size=(40, 2))
    >>> adapter = epsilot.DomainAdapter().fit(Xs, Xt=Xs + [5.0, 3.0])
    >>> (adapter.transform(Xs) - Xs).mean(axis=0).round(6)
    array([5., 3.])

    References
    ----------
    Courty, Flamary, Tuia and Rakotomamonjy (2017), "Optimal transport for domain adaptation".
    Luo, Xie and Huo (2023), Appendix H.
    """

    def __init__(
        self,
        *,
        X_target: ArrayLike | str | None = None,
        y_target: ArrayLike | None = None,
        method: str = "auto",
        eps: float | None = None,
        rtol: float | None = None,
        reg: float | None = None,
        tol: float | None = None,
        stop: str = "certificate",
        metric: MetricLike = "sqeuclidean",
        class_reg: float = 0.0,
        new_points: str | None = None,
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
        """Compute the plan from the source to the target.

        Parameters
        ----------
        Xs : (n, d) array-like
            Source points.
        ys : (n,) array-like, optional
            Their labels, for ``class_reg`` and for known labels of the target.
        Xt, yt : optional
            Target points and their known labels, instead of those passed to the constructor.
        """
        self._check_parameters()
        Xt, yt = (self.X_target, self.y_target) if Xt is None else (Xt, yt)
        if isinstance(Xt, str):
            check_choice("X_target", Xt, ("source",))
            Xt = Xs
        if Xt is None:
            raise InvalidProblem(
                "no target was given; pass its points as X_target=... or as fit(Xs, ys, Xt)."
            )
        Xt = columns_like(Xt, Xs, "Xt", "Xs")
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
        if self.new_points is not None:
            check_choice("new_points", self.new_points, ("target", "source"))
        check_count("n_neighbors", self.n_neighbors, 1)
        check_options(self.options)

    def _solve(self, labels: Array | None, known: Array | None) -> Result:
        """Solve the transport problem, with the penalties of the labels added to the cost."""
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
            # Known classes are kept apart by ten times the largest cost.
            C += 10.0 * max(abs(C.max()), abs(C.min())) * _conflicts(labels, known)
        result = run_request(request, Dense(C))
        classes = labels[None, :] == np.unique(labels)[:, None]
        for _ in range(10 if class_reg > 0 else 0):  # linearisations of the penalty
            share = result.plan_operator.T @ classes.T.astype(np.float64)
            share /= share.sum(axis=1, keepdims=True)
            slope = 0.5 / np.sqrt(share + 1e-3)  # bounded
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
        """Fit, and return the transported source."""
        self.fit(Xs, ys, Xt, yt)
        return self._moved(self.X_source_, self.X_source_, self.transported_)

    def transform(self, X: ArrayLike) -> Matrix:
        """Move points of the source to the target; return points of the target unchanged.

        Parameters
        ----------
        X : (k, d) array-like
            Points of the domain given by ``new_points``.
        """
        X = self._checked(X)
        if self.new_points == "target":
            return X
        if self.new_points == "source":
            return self._moved(X, self.X_source_, self.transported_)
        out = X.copy()
        is_source = _occurs_in(X, self.X_source_)
        if is_source.any():
            out[is_source] = self._moved(X[is_source], self.X_source_, self.transported_)
        n_new = int((~is_source & ~_occurs_in(X, self.X_target_)).sum())
        if n_new:
            warnings.warn(
                f"{n_new:,} of {len(X):,} points are in neither fitted domain; they are taken for "
                'points of the target and not moved. Pass new_points="target" if they are, or '
                'new_points="source" to move them.',
                stacklevel=2,
            )
        return out

    def inverse_transform(self, X: ArrayLike) -> Matrix:
        """Move points of the target to the source.

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
        """Move points like their nearest fitted neighbours."""
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
    """Check that all coordinates are finite."""
    bad = ~np.isfinite(X).all(axis=1)
    if bad.any():
        raise InvalidProblem(
            f"{name} holds NaN or infinity in row {int(np.argmax(bad))}; all features must be "
            "finite (impute or remove that row; inf and NaN have no distance)."
        )
    return X


def _occurs_in(X: Matrix, Y: Matrix) -> NDArray[np.bool_]:
    """Tell for each row of X whether it is a row of Y."""
    known = {row.tobytes() for row in Y + 0.0}  # without negative zeros
    return np.array([row.tobytes() in known for row in X + 0.0], dtype=bool)


def _labels(y: ArrayLike | None, n: int, name: str) -> Array | None:
    """Return labels as a vector with one entry per point, or None."""
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
            f"{name} has shape {labels.shape}; it must hold one label per point, {n} in all."
        )
    return labels


def _conflicts(labels: Array, known: Array) -> NDArray[np.bool_]:
    """Return a mask of the pairs with different known labels."""
    is_known = np.array([label is not None and label != -1 for label in known.tolist()])
    missing = set(known[is_known].tolist()) - set(labels.tolist())
    if missing:
        raise InvalidProblem(
            f"yt holds class {min(map(str, missing))!r}, which does not occur in ys; every class "
            "of the target must occur in the source (mark unlabelled points with -1)."
        )
    return np.asarray((labels[:, None] != known[None, :]) & is_known[None, :])
