"""The published contract, claim by claim, against what a machine measured.

It speaks of forward steps on an Apple M1 (68 GB/s, 12 MB last-level cache): micro-dlrm below 5 GB/s
with MLPs above 80% of the step; micro-dlrm-dram at 50 to 65 GB/s with lookups above 70% of its
step, which grows linearly with the row width and hardly with the MLPs' width.
"""

from __future__ import annotations

from typing import Any

import numpy as np

SLOW, MLP_SHARE, LOOKUP_SHARE = 5e9, 0.8, 0.7
FAST = 50 / 68
"""Share of the machine's bandwidth: 50 of the M1's 68 GB/s."""
LINEAR, INSENSITIVE = 0.1, 0.1
"""How far a step may be off a straight line over the widths, and grow when the MLPs double."""


def share(row: dict[str, Any], *parts: str) -> float:
    """Share of a step that its parts take."""
    return float(sum(row["parts"][part] for part in parts) / row["seconds"])


def at_ceilings(result: dict[str, Any], name: str) -> float:
    """Share of a step that its rows would take if rows and MLPs both ran at their ceilings."""
    row, top = result["forward"][name], result["ceilings"]
    rows = row["moved_bytes"] / top["bandwidth"]
    return float(rows / (rows + row["flops"] / top["flops"]))


def claims(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Each claim: what was measured, whether the claim holds, and figures that explain why."""
    small, large = (result["forward"][name] for name in ("micro-dlrm", "micro-dlrm-dram"))
    ceiling = result["ceilings"]["bandwidth"]
    parts = {name: {part: share(row, part) for part in row["parts"]}
             for name, row in (("small", small), ("large", large))}  # fmt: skip
    mlp, lookup = parts["small"]["mlp"], parts["large"]["lookup"]
    rate = large["lookup_bytes_per_second"]
    off = line_error(result)
    grown = mlp_growth(result)
    return [
        _claim(
            "micro-dlrm moves less than 5 GB/s", f"{small['bytes_per_second'] / 1e9:.2g} GB/s",
            small["bytes_per_second"] < SLOW, "its tables are 336 KB: there is little to move",
        ),
        _claim(
            "micro-dlrm: MLPs take more than 80% of the step", f"{mlp:.0%}", mlp > MLP_SHARE,
            f"lookups take {parts['small']['lookup']:.0%}, joining {parts['small']['join']:.0%}; "
            f"at both ceilings lookups would take {at_ceilings(result, 'micro-dlrm'):.0%}",
        ),
        _claim(
            "micro-dlrm-dram: lookups take more than 70% of the step", f"{lookup:.0%}",
            lookup > LOOKUP_SHARE,
            f"MLPs take {parts['large']['mlp']:.0%}, joining {parts['large']['join']:.0%}, the "
            f"hash {parts['large']['hash']:.0%}; with lookups at the bandwidth and MLPs at the "
            f"arithmetic of this machine, lookups would take "
            f"{at_ceilings(result, 'micro-dlrm-dram'):.0%}",
        ),
        _claim(
            "micro-dlrm-dram reads at the memory's bandwidth (50 of 68 GB/s and more)",
            f"lookups {rate / 1e9:.3g} GB/s, {rate / ceiling:.0%} of {ceiling / 1e9:.3g} GB/s",
            rate > FAST * ceiling,
            "rows of 1 KB at random, not arrays in order, by torch's own loop; over the whole step "
            f"it is {large['bytes_per_second'] / 1e9:.2g} GB/s",
        ),
        _claim(
            "micro-dlrm-dram: the step is linear in the row width",
            f"off a straight line by {off:.1%} at most", off <= LINEAR,
            "least squares of relative errors over the widths of the sweep",
        ),
        _claim(
            "micro-dlrm-dram: the step is insensitive to the MLPs' width",
            f"MLPs twice as wide: {grown:+.0%}", grown <= INSENSITIVE,
            f"MLPs take {parts['large']['mlp']:.0%} of the step",
        ),
    ]  # fmt: skip


def _claim(claim: str, measured: str, holds: bool, why: str) -> dict[str, Any]:
    return {"claim": claim, "measured": measured, "holds": bool(holds), "why": why}


def line_error(result: dict[str, Any]) -> float:
    """Largest relative distance of a step from the best straight line over the row width."""
    rows = [row for row in result["sweep"] if row["rows"] == result["rows"]]
    width = np.array([row["width"] for row in rows], dtype=np.float64)
    seconds = np.array([row["seconds"] for row in rows])
    terms = np.stack([np.ones_like(width), width], axis=1) / seconds[:, None]
    line, *_ = np.linalg.lstsq(terms, np.ones(len(rows)), rcond=None)
    return float(np.abs(terms @ line - 1).max())


def mlp_growth(result: dict[str, Any]) -> float:
    """How much longer a step takes when every hidden layer is twice as wide."""
    seconds = {row["times"]: row["seconds"] for row in result["mlp"]}
    return float(seconds[2] / seconds[1] - 1)
