"""The figures of a comparison, and how the terminal shows them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from rich.console import Group, RenderableType
from rich.text import Text

from formulations.instance import Objective, strict_json
from formulations.result.outcome import gap_between, without_share
from formulations.settings import TracePoint
from milp_planner.drawing.grid import Cell, Cells, Grid, headed
from milp_planner.drawing.page import Shown
from milp_planner.drawing.units import UNKNOWN, show_cost, show_gap, show_seconds
from milp_planner.errors import BadInput
from milp_planner.features.plan.verdict import MEANING
from milp_planner.inputs.problems import choice
from milp_planner.plans.plan_file import read_document

FORMAT = "milp-planner-comparison/1"
SHARED = "auto, cpsat and scale start from the plans that they made for the objectives above."
#: Statuses that claim a proof; :attr:`ComparisonRow.word` says whose.
PROOFS = ("optimal", "infeasible")


@dataclass(frozen=True)
class ComparisonRow:
    """One formulation minimising one objective; fields are None without a plan."""

    label: str
    asked: str
    status: str
    feasible: bool | None
    """The verdict of the solver-free check on the Instance."""
    objectives: dict[str, int]
    """Values of its plan under all objectives; in old files without pipelined_step."""
    gap: float | None
    """Gap to the best bound of any formulation."""
    bound: int | None
    """The formulation's own bound."""
    seconds: float | None
    note: str
    trace: tuple[TracePoint, ...] = ()
    """Its best plan and bound over time, including the end."""
    standing: str = ""
    """The status in words, including what is certified; empty in old files."""
    outcome: Any = field(default=None, compare=False, repr=False)
    """Its :class:`formulations.Outcome`, which no file keeps; None for a formulation that does not
    cover the instance, and for a plan that ignores fusion groups (the row *as planned*)."""

    @property
    def word(self) -> str:
        """The text of the status column, which stands next to the certified gap."""
        claims = self.status in PROOFS
        return without_share(self.standing or self.status) if claims else self.status

    def known(self, what: str) -> tuple[tuple[float, int], ...]:
        """(seconds, value) of each improved ``objective`` or ``bound``, in order of time."""
        found: list[tuple[float, int]] = []
        for point in self.trace:
            value = point.objective if what == "objective" else point.bound
            sign = -1 if what == "objective" else 1
            if value is not None and (not found or sign * value > sign * found[-1][1]):
                found.append((point.seconds, value))
        return tuple(found)


@dataclass(frozen=True)
class BoundInfo:
    """The bound that the gaps of one section refer to."""

    bound: int
    """The largest bound of any row."""
    by: str
    """The method it comes from."""
    exact: bool | None = None
    """Whether it was derived in integers rather than floating point; None in old files."""
    certified: int | None = None
    """The largest bound proved by a certificate; at most ``bound``."""


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """All rows of a comparison."""

    model: str
    cluster: str
    """Names of model and cluster; may be empty."""
    rows: tuple[ComparisonRow, ...]
    bounds: dict[str, BoundInfo | None]
    """By objective; None where no bound is known."""
    fingerprints: dict[str, str]
    """Fingerprints of the Instances, by objective."""
    time_unit: str
    profile: str = ""
    error: float | None = None
    """The profile of the prices, and the relative error that it states of them; in old files
    unknown."""

    def best(self, asked: str) -> int | None:
        """The least objective of a feasible plan in one section."""
        values = [r.objectives[asked] for r in self.rows if r.asked == asked and r.feasible]
        return min(values, default=None)

    def above_best(self, row: ComparisonRow) -> float | None:
        """(objective − best)/max(1, |best|) of a feasible row, else None."""
        best, value = self.best(row.asked), row.objectives.get(row.asked)
        if best is None or value is None or not row.feasible:
            return None
        return (value - best) / max(1, abs(best))

    def certified_gap(self, row: ComparisonRow) -> float | None:
        """Gap of a feasible row to the largest certified bound of any formulation."""
        best = self.bounds[row.asked]
        if best is None or not row.feasible:
            return None
        return gap_between(row.objectives.get(row.asked), best.certified)

    def origin(self, asked: str) -> str:
        """One sentence on the certified bound, and one on any higher bound that a solver proved."""
        best = self.bounds[asked]
        if any(row.asked == asked and row.status == "infeasible" for row in self.rows):
            return "There is no plan, so there is no gap."
        if best is None:
            return "No bound is proved, so no gap is known."
        text = "Nothing is certified."
        if best.certified is not None:
            text = f"Certified: no plan is below {show_cost(best.certified, self.time_unit)}."
        if best.certified == best.bound:
            return text
        how = {True: " in integers", False: " in floating point", None: ""}[best.exact]
        shown = show_cost(best.bound, self.time_unit)
        return f"{text} Gaps are to {shown}, proved by {best.by}{how}."

    def told_apart(self, asked: str) -> str | None:
        """A sentence if plans differ by less than the prices' stated error, or if none is stated;
        None if all differ by more, or not at all."""
        above = {
            row.label: share
            for row in self.rows
            if row.asked == asked and (share := self.above_best(row)) is not None
        }
        apart = [share for share in above.values() if share]
        if not apart or not self.profile:
            return None
        if self.error is None:
            return f"Profile {self.profile} states no error of its prices."
        if min(apart) >= self.error:
            return None
        close = [label for label, share in above.items() if share < self.error]
        return (
            f"Not ranked: {', '.join(close)} differ by less than {self.error:.0%}, the error that "
            f"profile {self.profile} states of its prices."
        )

    def verdict(self, row: ComparisonRow) -> str:
        """One sentence that judges the row's plan."""
        if row.status in ("breaks", "not covered", "unknown"):
            what = {"breaks": "its plan does not fit", "unknown": "found no plan"}
            return f"{what.get(row.status, 'does not apply')}{f': {row.note}' if row.note else ''}"
        if row.status == "infeasible":
            return row.word
        if row.gap == 0:
            return self.proof(row)
        above = self.above_best(row)
        beside = "the best plan found" if not above else f"{show_gap(above)} above the best found"
        return f"{beside}, {self.proof(row)}"

    def proof(self, row: ComparisonRow) -> str:
        """The certified gap of a feasible row, then what a solver proved beyond it."""
        certified = self.certified_gap(row)
        if certified == 0:
            return "certified: no plan is better"
        if row.gap is None:
            return "no bound is known"
        text = "nothing certified" if certified is None else f"certified gap {show_gap(certified)}"
        if row.gap == 0:
            by = "itself" if row.status == "optimal" else "another's bound"
            return f"{text}; proved by {by}: no plan is better"
        return text if row.gap == certified else f"{text}, gap {show_gap(row.gap)}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, from which :func:`read_comparison` restores an equal object."""
        bare = replace(self, rows=tuple(replace(row, outcome=None) for row in self.rows))
        document = {"format": FORMAT, **asdict(bare)}
        for row in document["rows"]:
            del row["outcome"]
        return document

    def drawing(self) -> RenderableType:
        """Every section, then the notes of its rows."""
        parts: list[RenderableType] = []
        for asked in self.bounds:
            noted = [row for row in self.rows if row.asked == asked and row.note]
            notes = [Text(f"{row.label}: {row.note}", style="dim") for row in noted]
            title = f"minimising {asked}: {MEANING[asked]}"
            said = [self.origin(asked), *filter(None, [self.told_apart(asked)])]
            parts.append(headed(title, comparison_grid(self, asked), *notes, *said))
            parts.append(Text(""))
        if len(self.bounds) > 1:
            parts += [Text(SHARED, style="dim"), Text("")]
        return Group(*parts[:-1])


def read_comparison(path: str | Path) -> Comparison:
    """Read what ``compare -o`` wrote; BadInput for anything else, or for a wrong field."""
    document = read_document(path)
    strict_json.check_numbers(document, str(path))
    if document.pop("format", None) != FORMAT:
        raise BadInput(f"{path}: is not a comparison; allowed: {FORMAT!r} (what compare -o writes)")
    try:
        found = TypeAdapter(Comparison).validate_json(json.dumps(document), strict=True)
    except ValidationError as error:
        finding = error.errors()[0]
        where = ".".join(map(str, finding["loc"]))
        raise BadInput(f"{path}: {where}: {finding['msg'].lower()}") from None
    _check(found, path)
    return found


def _check(found: Comparison, path: str | Path) -> None:
    """Check what types cannot: objectives exist, rows have one of them, plans have a cost."""
    kinds = [objective.value for objective in Objective]
    for asked in (*found.bounds, *found.fingerprints):
        if asked not in kinds:
            raise BadInput(f"{path}: unknown objective {asked!r}; {choice(asked, kinds)}")
    for index, row in enumerate(found.rows):
        if row.asked not in found.bounds:
            raise BadInput(f"{path}: rows.{index}.asked: {row.asked!r} has no bounds with it")
        if row.feasible and row.asked not in row.objectives:
            raise BadInput(f"{path}: rows.{index}.objectives: {row.asked} is missing")


def comparison_grid(info: Comparison, asked: str) -> Grid:
    """The rows of one objective, one per formulation."""
    mine = [row for row in info.rows if row.asked == asked]
    kinds = [kind.value for kind in Objective if kind != Objective.PIPELINED_STEP]
    kinds += [k for k in (Objective.PIPELINED_STEP.value,) if any(k in r.objectives for r in mine)]
    rows: list[Cells] = []
    for row in mine:
        fits = {True: "yes", False: "no", None: UNKNOWN}[row.feasible]
        rows.append((
            row.label,
            Cell(row.word, over=row.status == "breaks"),
            Cell(fits, over=row.feasible is False),
            *(Cell.cost(row.objectives.get(kind), info.time_unit) for kind in kinds),
            *map(Cell.gap, (info.certified_gap(row), row.gap)),
            Cell(UNKNOWN if row.seconds is None else show_seconds(row.seconds), row.seconds),
        ))  # fmt: skip
    head = ("formulation", "status", "fits", *(f"#{kind}" for kind in kinds), "#certified gap",
            "#gap", "#time")  # fmt: skip
    name, least = f"formulations, minimising {asked}", {"formulation": 12, "status": 10}
    return Grid.of(
        f"{asked}-rows", name, "One row per formulation", head, rows, least, tuple(least)
    )
