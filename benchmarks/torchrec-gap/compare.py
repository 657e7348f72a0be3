"""Compare two sets of runs of ``run.py`` on the same instances, and write two blocks of a page.

    python benchmarks/torchrec-gap/compare.py [--check]

docs/against-torchrec.md: the newest run on the unseen instances (``results/unseen-2*.json``) beside
that of 85afd5b (``results/unseen-2026-11-24.json``, and ``results/before-2026-11-26.json``, the
same code two days later) and that of 38a0b828 (``results/unseen-2026-11-26.json``).
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, variance
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import stored, update

HERE = Path(__file__).resolve().parent
RESULTS, DOCS = HERE / "results", HERE.parents[1] / "docs"
Row = dict[str, Any]
Runs = dict[str, list[Row]]

#: Standard errors of a difference up to which it counts as noise.
_NOISE = 2.0
#: What is compared.
_OF = ("plan", "gap", "certified gap")


@dataclass(frozen=True)
class Difference:
    """*After − before* of one value, and its noise.

    Attributes
    ----------
    value : float
        Of the means over runs.
    error : float
        Its standard error.
    """

    value: float
    error: float

    def more(self) -> bool:
        """Whether it is above 0 by more than its noise."""
        return self.value > _NOISE * self.error

    def text(self) -> str:
        """In percent, or in points of a percentage."""
        return f"{100 * self.value:+.2f} ± {100 * self.error:.2f}"


def difference(before: list[float], after: list[float], scale: float = 1.0) -> Difference:
    """The difference of two means, as a share of ``scale``. The runs of both sides share one
    variance, so that a side may have a single run."""
    gained = fmean(after) - fmean(before)
    freedom = len(before) + len(after) - 2
    squares = sum(variance(side) * (len(side) - 1) for side in (before, after) if len(side) > 1)
    spread = squares / freedom if freedom else 0.0
    return Difference(
        gained / scale, (spread * (1 / len(before) + 1 / len(after))) ** 0.5 / abs(scale)
    )


def pooled(each: list[Difference]) -> Difference:
    """The mean of independent differences."""
    errors = sum(one.error**2 for one in each) ** 0.5
    return Difference(fmean(one.value for one in each), errors / len(each))


def runs_of(document: dict[str, Any], formulation: str = "auto") -> Runs:
    """The runs of each instance, small instances first."""
    found: Runs = defaultdict(list)
    for row in sorted(document["rows"], key=lambda r: (r["tables"], r["ranks"], r["instance"])):
        if row["formulation"] == formulation:
            found[row["instance"]].append(row)
    return dict(found)


def values(rows: Iterable[Row], name: str) -> list[float]:
    """What the runs of an instance ended with; 1 for a gap that is not known."""
    return [1.0 if row[name] is None else float(row[name]) for row in rows]


def certified(rows: Iterable[Row]) -> list[float]:
    """The certified gaps of runs."""
    known = ((row["objective"], row["certified_bound"]) for row in rows)
    return [1.0 if bound is None else (cost - bound) / max(1, abs(cost)) for cost, bound in known]


def of_instance(before: list[Row], after: list[Row]) -> tuple[Difference, ...]:
    """How much dearer plans are (a share of those before), how much wider gaps and certified
    gaps."""
    plans = values(before, "objective"), values(after, "objective")
    gaps = values(before, "gap"), values(after, "gap")
    proved = certified(before), certified(after)
    return difference(*plans, scale=fmean(plans[0])), difference(*gaps), difference(*proved)


def sizes(before: Runs, after: Runs) -> str:
    """Every size of instances, before and after."""
    each = compared(before, after)
    sizes: dict[tuple[int, int], list[str]] = defaultdict(list)
    for name in each:
        sizes[after[name][0]["tables"], after[name][0]["ranks"]].append(name)
    lines = [
        "| size | instances | runs before, after | plan dearer, % | gap wider, points | "
        "certified gap wider | median gap before | after | worse beyond its noise |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for (tables, ranks), names in sizes.items():
        found = [pooled([each[name][of] for name in names]) for of in range(len(_OF))]
        sides = [[row for name in names for row in runs[name]] for runs in (before, after)]
        worse = [what for what, one in zip(_OF, found, strict=True) if one.more()]
        cells = [
            f"{tables:,}×{ranks}", str(len(names)), f"{len(sides[0])}, {len(sides[1])}",
            *(one.text() for one in found),
            *(f"{100 * median(values(side, 'gap')):.3f}%" for side in sides),
            " and ".join(worse) or "no",
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def instances(before: Runs, after: Runs) -> str:
    """Every instance, before and after."""
    lines = [
        "| instance | before ms: best | median | worst | after ms: best | median | worst | "
        "plan dearer, % | gap wider, points | certified gap wider |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, found in compared(before, after).items():
        cells = [
            name, *_three(before[name]), *_three(after[name]), *(one.text() for one in found),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def compared(before: Runs, after: Runs) -> dict[str, tuple[Difference, ...]]:
    """The differences of the instances that both sides have."""
    return {name: of_instance(before[name], after[name]) for name in before if name in after}


def _three(rows: list[Row]) -> list[str]:
    plans = sorted(row["objective"] for row in rows)
    return [f"{plan / 1e9:.4f}" for plan in (plans[0], median(plans), plans[-1])]


def main() -> int:
    """Write the blocks, or only tell whether they are up to date."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check

    def runs(*names: str) -> Runs:
        found: Runs = defaultdict(list)
        for name in names:
            for instance, rows in runs_of(stored(RESULTS / f"{name}.json")).items():
                found[instance] += rows
        return found

    after = runs_of(stored(RESULTS, "unseen-2*.json"))
    large, smaller = runs("unseen-2026-11-24", "before-2026-11-26"), runs("unseen-2026-11-26")
    blocks = {
        "rebuilt": sizes(large, after),
        "redesigned": f"{sizes(smaller, after)}\n\n{instances(smaller, after)}",
    }
    named = {f"{name}: benchmarks/torchrec-gap/compare.py": text for name, text in blocks.items()}
    return update(DOCS / "against-torchrec.md", named, check=check)


if __name__ == "__main__":
    sys.exit(main())
