"""Nonnegative least squares of relative errors."""

from __future__ import annotations

import numpy as np

from milp_planner.pricing.units import FloatArray


def relative_fit(
    terms: FloatArray, seconds: FloatArray, weights: FloatArray | float = 1.0
) -> tuple[FloatArray, float]:
    """Nonnegative coefficients with the least mean squared relative error, and that error.

    ``weights`` multiply the relative errors.

    References
    ----------
    C. Lawson, R. Hanson, "Solving least squares problems", 1974, chapter 23 (algorithm NNLS).
    """
    target = weights * np.ones(len(seconds))
    scaled = terms / seconds[:, None] * target[:, None]
    size = np.linalg.norm(scaled, axis=0)
    size[size == 0] = 1.0
    found = nonnegative(scaled / size, target) / size
    return found, float(np.mean((scaled @ found - target) ** 2))


def nonnegative(matrix: FloatArray, target: FloatArray) -> FloatArray:
    """NNLS for unit columns: free the column that helps most, fix at 0 those that turn negative."""
    found = np.zeros(matrix.shape[1])
    free = np.zeros(matrix.shape[1], np.bool_)
    for _ in range(10 * matrix.shape[1]):
        slope = np.where(free, -np.inf, matrix.T @ (target - matrix @ found))
        if slope.max() <= 1e-10:
            break
        free[slope.argmax()] = True
        while True:
            wanted = np.zeros_like(found)
            wanted[free] = np.linalg.lstsq(matrix[:, free], target, rcond=None)[0]
            wrong = free & (wanted <= 0)
            if not wrong.any():
                found = wanted
                break
            share = (found[wrong] / (found[wrong] - wanted[wrong])).min()
            found = found + share * (wanted - found)
            free &= found > 1e-15
            found[~free] = 0.0
    return found
