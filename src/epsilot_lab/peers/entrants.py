"""Who takes part, and with which settings."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from importlib import metadata
from typing import Literal

from .adapters import Setting

OURS = "epsilot"
REFERENCE = "emd2"

Kind = Literal["exact", "certified", "entropic"]


@dataclass(frozen=True)
class Entrant:
    """A solver: ``exact`` ones are run once, ``certified`` ones for each accuracy asked for.

    ``entropic`` ones know no accuracy: they are tuned over values of η and tolerances, and the
    fastest run that turned out accurate enough counts.
    """

    name: str
    label: str
    kind: Kind
    adapter: str  # module:function, imported by the process that runs it
    package: str  # as it is imported
    distribution: str  # as it is installed
    style: tuple[int, str] | None = None  # colour and dashes in the figure
    largest: int | None = None

    @property
    def is_installed(self) -> bool:
        """Tell whether its package can be imported."""
        return importlib.util.find_spec(self.package) is not None

    @property
    def version(self) -> str:
        """Return the version of its package."""
        return metadata.version(self.distribution) if self.is_installed else "not installed"


def _ours(name: str, label: str, kind: Kind, function: str, **more: object) -> Entrant:
    adapter = f"epsilot_lab.peers.adapters:{function}"
    return Entrant(name, label, kind, adapter, "epsilot", "epsilot", **more)  # type: ignore[arg-type]


def _peer(
    name: str, label: str, function: str, package: str, distribution: str, style: tuple[int, str]
) -> Entrant:
    adapter = f"epsilot_lab.peers.adapters:{function}"
    kind: Kind = "exact" if name == REFERENCE else "entropic"
    return Entrant(name, label, kind, adapter, package, distribution, style)


#: Our variants show what auto chooses between, up to the sizes where the choice is clear.
ENTRANTS: dict[str, Entrant] = {
    entrant.name: entrant
    for entrant in (
        _ours(OURS, "epsilot", "certified", "epsilot_auto", style=(0, "-")),
        _peer(REFERENCE, "ot.emd2", "emd2", "ot", "POT", (1, "-")),
        _ours("epsilot-exact", "epsilot exact", "exact", "epsilot_exact", largest=1024),
        _ours(
            "epsilot-restricted",
            "epsilot restricted_simplex",
            "certified",
            "epsilot_restricted",
            largest=512,
        ),
        _peer("sinkhorn", "ot.sinkhorn", "pot_sinkhorn", "ot", "POT", (2, "-")),
        _peer("sinkhorn_log", "ot sinkhorn_log", "pot_sinkhorn_log", "ot", "POT", (2, "--")),
        _peer("regot-bcd", "regot BCD", "regot_bcd", "regot", "regot", (3, "-")),
        _peer("regot-lbfgs", "regot L-BFGS", "regot_lbfgs", "regot", "regot", (3, "--")),
        _peer("regot-splr", "regot SPLR", "regot_splr", "regot", "regot", (4, "-")),
        _peer("regot-ssns", "regot SSNS", "regot_ssns", "regot", "regot", (4, "--")),
        _peer("ott", "OTT-JAX", "ott", "ott", "ott-jax", (5, "-")),
        _peer("geomloss", "GeomLoss", "geomloss", "geomloss", "geomloss", (6, ":")),
    )
}


@dataclass(frozen=True)
class RelativeSetting:
    """A setting as the lines name it, relative to the problem.

    ``rtol`` for certified solvers. For entropic ones η = ``reg`` times the optimal cost, and the
    marginal error is such that mending it at the mean cost adds ``tol`` times η: tuning uses
    the answer, which nobody has in practice.
    """

    rtol: float | None = None
    reg: float | None = None
    tol: float | None = None

    def absolute(self, value: float, mean_cost: float) -> Setting:
        """Return the absolute setting for a problem of which the optimal cost is known."""
        if self.reg is None or self.tol is None:
            return Setting(self.rtol)
        eta = self.reg * value
        return Setting(None, eta, self.tol * eta / mean_cost, self.tol)


@dataclass(frozen=True)
class Tuning:
    """The settings that entropic solvers are tuned over, coarse first."""

    regs: tuple[float, ...]
    tols: tuple[float, ...]

    def settings(self, entrant: Entrant, rtols: tuple[float, ...]) -> list[RelativeSetting]:
        """Return the settings a solver runs with."""
        if entrant.kind == "exact":
            return [RelativeSetting()]
        if entrant.kind == "certified":
            return [RelativeSetting(rtol) for rtol in rtols]
        return [RelativeSetting(None, reg, tol) for reg in self.regs for tol in self.tols]
