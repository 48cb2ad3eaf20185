"""Offer every name of POT: some replaced, the others passed through with ours inside."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import math
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any, TypeVar, cast

import ot
from ot.utils import OTResult

from ..errors import InvalidProblem

Function = TypeVar("Function", bound=Callable[..., Any])

#: The package that mirrors ``ot``.
HERE = __name__.rpartition(".")[0]
#: Modules that solve no transport problem: their functions are passed as they are.
PLAIN = ("ot.backend", "ot.datasets", "ot.gnn", "ot.helpers", "ot.plot", "ot.utils")
#: Modules whose estimators call the functions that are replaced.
WITH_ESTIMATORS = ("ot.da", "ot.mapping")

_ours: dict[Any, Any] = {}  # by POT's function
_originals: dict[Any, Any] = {}  # by our function
_passed: dict[Any, Any] = {}  # what a name of POT is passed as, by its value
_lock = threading.RLock()
_depth = 0
_sites: list[tuple[ModuleType, str, Any]] = []  # names to replace: module, name, POT's function


class UncertifiedWarning(UserWarning):
    """POT's own function answered a call that epsilot refused, without bounds."""


class LeftToPot(Exception):
    """One of our functions leaves a call to the function of POT that it replaces."""

    def __init__(
        self, reason: str, *, is_refusal: bool = False, has_inner_bounds: bool = False
    ) -> None:
        super().__init__(reason)
        self.is_refusal = is_refusal
        self.has_inner_bounds = has_inner_bounds  # the log of POT's function takes those of ours


def leave_if(condition: bool, reason: str) -> None:
    """Leave the call to POT if a condition holds."""
    if condition:
        raise LeftToPot(reason)


@contextmanager
def leaving_refusals() -> Iterator[None]:
    """Leave problems that epsilot refuses to POT, with a warning."""
    try:
        yield
    except InvalidProblem as error:
        raise LeftToPot(str(error), is_refusal=True) from error


def replaces(name: str) -> Callable[[Function], Function]:
    """Let a function replace one of POT, given by its public name, if this version has it.

    Calls that it leaves by :class:`LeftToPot` are made to POT's function as they came, with ours
    inside. Logs of such calls name the reason (``uncertified``), and have an infinite ``gap``.
    """

    def register(function: Function) -> Function:
        module, _, attribute = name.rpartition(".")
        try:
            found = getattr(importlib.import_module(f"ot.{module}"), attribute, None)
        except ModuleNotFoundError:  # in an older version
            found = None

        @functools.wraps(function)
        def call(*args: Any, **keywords: Any) -> Any:
            try:
                return function(*args, **keywords)
            except LeftToPot as left:
                if found is None:
                    raise
                reason, is_refusal = str(left), left.is_refusal
                has_inner_bounds = left.has_inner_bounds
            if is_refusal:
                warnings.warn(
                    f"{attribute}: POT answers without bounds, because epsilot refuses: {reason}",
                    UncertifiedWarning,
                    stacklevel=2,
                )
            with with_ours():
                return _without_bounds(found(*args, **keywords), reason, anew=has_inner_bounds)

        if found is not None:
            _ours[found] = call
            _originals[call] = found
        return cast(Function, call)

    return register


def hide_inner_bounds(name: str) -> None:
    """Let no log of a function of POT hold the bounds of the last problem that it solves inside."""
    module, _, attribute = name.rpartition(".")
    theirs = getattr(importlib.import_module(f"ot.{module}"), attribute, None)
    if theirs is None:
        return

    @functools.wraps(theirs)
    def function(*args: Any, **keywords: Any) -> Any:
        raise LeftToPot("only the last inner problem was certified", has_inner_bounds=True)

    replaces(name)(function)


def _without_bounds(answer: Any, reason: str, *, anew: bool = False) -> Any:
    """Mark the logs of an answer of POT as uncertified, and return it.

    Logs that hold a gap are those of our functions inside, and stay, unless ``anew`` is true.
    """
    log = getattr(answer, "log", None)
    if isinstance(answer, OTResult) and log is None:
        log = answer._log = {}
    for part in (*(answer if isinstance(answer, (list, tuple)) else ()), log):
        if isinstance(part, list):
            _without_bounds(part, reason, anew=anew)
        elif isinstance(part, dict) and (anew or "gap" not in part):
            part.update(lower_bound=-math.inf, gap=math.inf, uncertified=reason)
    return answer


def original(function: Callable[..., Any]) -> Any:
    """Return POT's function that one of ours replaces."""
    return _originals[function]


# -- replacing inside POT --------------------------------------------------------------------------


def _find_sites() -> list[tuple[ModuleType, str, Any]]:
    """Return all names of POT's loaded modules that hold a function that we replace."""
    sites = []
    for name, module in list(sys.modules.items()):
        if module is not None and (name == "ot" or name.startswith("ot.")):
            for attribute, value in list(vars(module).items()):
                if isinstance(value, FunctionType) and (value in _ours or value in _originals):
                    sites.append((module, attribute, _originals.get(value, value)))
    return sites


def _enter(*, anew: bool) -> None:
    """Put our functions in the place of POT's; ``anew`` looks for modules loaded since."""
    global _depth, _sites
    with _lock:
        if anew or not _sites:
            _sites = _find_sites()
        if anew or _depth == 0:
            for module, name, function in _sites:
                setattr(module, name, _ours[function])
        _depth += 1


def _leave() -> None:
    """Put POT's functions back, after the last use."""
    global _depth, _sites
    with _lock:
        _depth -= 1
        if _depth == 0:
            for module, name, function in _sites:
                setattr(module, name, function)


@contextmanager
def with_ours() -> Iterator[None]:
    """Let POT's functions call ours inside."""
    _enter(anew=False)
    try:
        yield
    finally:
        _leave()


class Installation:
    """Our functions in the place of POT's, until ``undo`` or the end of a ``with`` block."""

    def __init__(self) -> None:
        _enter(anew=True)
        self._is_active = True

    def undo(self) -> None:
        """Put POT's functions back, if no other installation is active."""
        if self._is_active:
            self._is_active = False
            for site in _find_sites():  # modules that were loaded meanwhile took our functions
                if site not in _sites:
                    _sites.append(site)
            _leave()

    def __enter__(self) -> Installation:
        return self

    def __exit__(self, *exception: object) -> None:
        self.undo()

    def __repr__(self) -> str:
        return f"<epsilot.pot in the place of ot: {'active' if self._is_active else 'undone'}>"


# -- passing names through -------------------------------------------------------------------------


def passed(value: Any) -> Any:
    """Return what a value of one of POT's modules is passed as."""
    if isinstance(value, ModuleType):
        is_theirs = value.__name__.startswith("ot.") and hasattr(value, "__file__")
        return mirror(value.__name__) if is_theirs else value
    if isinstance(value, FunctionType):
        if value in _ours:
            return _ours[value]
        if value in _originals or not _solves(value.__module__):
            return value
        return _once(value, _with_ours_inside)
    if isinstance(value, type) and value.__module__ in WITH_ESTIMATORS:
        is_estimator = hasattr(value, "fit") and not value.__name__.startswith("Base")
        return _once(value, _estimator) if is_estimator else value
    return value


def _solves(module: str | None) -> bool:
    """Tell whether functions of a module may solve transport problems."""
    return (
        module is not None
        and module.startswith("ot.")
        and not any(module == plain or module.startswith(f"{plain}.") for plain in PLAIN)
    )


def _once(value: Any, make: Callable[[Any], Any]) -> Any:
    """Return what was made of a value before, or make it."""
    if value not in _passed:
        _passed[value] = make(value)
    return _passed[value]


def _renamed(module: str) -> str:
    """Return the name of a module's mirror."""
    return HERE + module.removeprefix("ot")


def _with_ours_inside(function: FunctionType) -> Any:
    """Return a function of POT that calls ours inside."""

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        with with_ours():
            return function(*args, **keywords)

    call.__module__ = _renamed(function.__module__)  # pickle finds it there
    return call


def _estimator(kind: type) -> type:
    """Return a subclass of an estimator of POT whose methods call our functions inside."""
    methods: dict[str, Any] = {}
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        if not name.startswith("_") and (method.__module__ or "").startswith("ot."):
            methods[name] = _with_ours_inside(method)
    if "log" in inspect.signature(kind).parameters:
        methods["fit"] = _with_bounds(methods["fit"])
    methods |= {"__module__": _renamed(kind.__module__), "__doc__": kind.__doc__}
    return type(kind.__name__, (kind,), methods)


def _with_bounds(fit: Any) -> Any:
    """Return a fit that keeps the bounds of the plan as ``lower_bound_`` and ``gap_``."""

    @functools.wraps(fit)
    def call(self: Any, *args: Any, **keywords: Any) -> Any:
        log, self.log = self.log, True
        try:
            fitted = fit(self, *args, **keywords)
        finally:
            self.log = log
        entries = self.log_ if isinstance(getattr(self, "log_", None), dict) else {}
        self.lower_bound_ = entries.get("lower_bound", -math.inf)
        self.gap_ = entries.get("gap", math.inf)
        return fitted

    return call


class ModuleMirror(ModuleType):
    """A module of POT under our name."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(_renamed(module.__name__), module.__doc__)
        self._module = module
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__all__", "__version__"):
            raise AttributeError(name)
        return passed(getattr(self._module, name))

    def __dir__(self) -> list[str]:
        return dir(self._module)


def mirror(name: str) -> ModuleType:
    """Return the mirror of the module of POT with this name, and load that module."""
    here = _renamed(name)
    if here not in sys.modules:
        sys.modules[here] = ModuleMirror(importlib.import_module(name))
    return sys.modules[here]


class Finder(MetaPathFinder, Loader):
    """Find ``epsilot.pot.x.y`` as the mirror of ``ot.x.y``."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a specification for mirrors of modules that exist."""
        if not name.startswith(f"{HERE}."):
            return None
        theirs = "ot" + name.removeprefix(HERE)
        try:
            is_there = importlib.util.find_spec(theirs) is not None
        except ModuleNotFoundError:
            is_there = False
        return ModuleSpec(name, self, is_package=True) if is_there else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return a new mirror."""
        return ModuleMirror(importlib.import_module("ot" + spec.name.removeprefix(HERE)))

    def exec_module(self, module: ModuleType) -> None:
        """Run nothing: names are looked up in POT's module."""


def attribute(name: str) -> Any:
    """Return a name of ``ot`` itself, or one of its modules."""
    if not hasattr(ot, name):
        try:
            return mirror(f"ot.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"ot.{name}":
                raise
            raise AttributeError(f"module {HERE!r} has no attribute {name!r}") from None
    return passed(getattr(ot, name))


if not any(isinstance(finder, Finder) for finder in sys.meta_path):
    sys.meta_path.append(Finder())
