"""Show figures in notebooks, which know those of pyplot only."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

#: Pixels per inch of the figure as it is shown, and pixels of the picture for each of them.
SHOWN_DPI, PIXEL_RATIO = 72, 2


class NotebookFigure(Figure):
    """A figure without a window that a notebook shows as the value of a cell, without magic."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """Return the figure as a PNG file, and the size at which a notebook shows it."""
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=PIXEL_RATIO * SHOWN_DPI)
        width, height = (round(SHOWN_DPI * size) for size in self.get_size_inches())
        return file.getvalue(), {"width": width, "height": height}
