"""Apply colour maps: tabulated on a cubic lattice, or affine with varying coefficients."""

from __future__ import annotations

from ..kernels.compiling import njit


@njit(cache=True, nogil=True, error_model="numpy")
def trilinear(lattice, colors, out, start, stop):
    """out_k = value at colour k in [0, 1]³ of the (L, L, L, 3) lattice, for k in start..stop."""
    side = lattice.shape[0]
    one = colors.dtype.type(1)
    zero = colors.dtype.type(0)
    scale = colors.dtype.type(side - 1)
    for k in range(start, stop):
        x = min(max(colors[k, 0], zero), one) * scale
        y = min(max(colors[k, 1], zero), one) * scale
        z = min(max(colors[k, 2], zero), one) * scale
        i, j, m = min(int(x), side - 2), min(int(y), side - 2), min(int(z), side - 2)
        x, y, z = x - i, y - j, z - m
        for c in range(3):
            total = zero
            for corner in range(8):
                di, dj, dm = corner >> 2, (corner >> 1) & 1, corner & 1
                weight = (x if di else one - x) * (y if dj else one - y) * (z if dm else one - z)
                total += weight * lattice[i + di, j + dj, m + dm, c]
            out[k, c] = total


@njit(cache=True, nogil=True, error_model="numpy")
def affine(coefficients, colors, height, width, first, out, start, stop):
    """out_k = A x_k + b, with A and b interpolated bilinearly from a coarser picture.

    Pixel k of the strip is pixel ``first + k`` of a (height, width) picture, whose (h, w, 12)
    ``coefficients`` hold A by rows, then b, at the centres of h by w equal rectangles.
    """
    h, w, _ = coefficients.shape
    one = colors.dtype.type(1)
    for k in range(start, stop):
        row, col = divmod(first + k, width)
        y = min(max((row + 0.5) * h / height - 0.5, 0.0), h - 1.0)
        x = min(max((col + 0.5) * w / width - 0.5, 0.0), w - 1.0)
        i, j = min(int(y), max(h - 2, 0)), min(int(x), max(w - 2, 0))
        below, right = min(i + 1, h - 1), min(j + 1, w - 1)
        v, u = colors.dtype.type(y - i), colors.dtype.type(x - j)
        for c in range(3):
            total = colors.dtype.type(0)
            for d in range(4):
                e = 9 + c if d == 3 else 3 * c + d
                value = (one - v) * (
                    (one - u) * coefficients[i, j, e] + u * coefficients[i, right, e]
                ) + v * ((one - u) * coefficients[below, j, e] + u * coefficients[below, right, e])
                total += value * (one if d == 3 else colors[k, d])
            out[k, c] = total
