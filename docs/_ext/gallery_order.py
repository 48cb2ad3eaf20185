"""The order of the gallery: from the first certificate to what it is good for."""

from pathlib import Path

FIRST = (
    "plan_and_bounds",
    "plan_and_prices",
    "first_certificate",
    "what_eps_buys",
    "audit_of_others",
    "methods_racing",
    "pdasmd_theory",
    "image_warping",
    "color_transfer",
    "two_moons",
    "large_clouds",
    "megapixel",
    "digits_nearest",
    "partial_matching",
    "unbalanced_growth",
    "persistence_diagrams",
)


class Order:
    """What is named above comes first, the rest by name."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, script: str) -> tuple[int, str]:
        """Return the key by which a script is sorted."""
        name = Path(script).stem
        return (FIRST.index(name) if name in FIRST else len(FIRST), name)
