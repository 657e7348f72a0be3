"""A batch as one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from formulations.result.outcome import without_share
from milp_planner.drawing.charts import (
    Drawing,
    Line,
    LogScale,
    Scale,
    chart,
)
from milp_planner.drawing.grid import Cell, Cells, Grid
from milp_planner.drawing.page import Fact, Part, Section, fill
from milp_planner.drawing.units import (
    UNKNOWN,
    show_axis,
    show_cost,
    show_gap,
    show_percent,
    show_rate,
)
from scenarios.batch.curves import Profile, Row
from scenarios.batch.info import BatchInfo, summary_grid
from scenarios.batch.sweeps import sweeps_section

#: A heading (with a leading ``#`` for numbers) and the cells below it.
_Column = tuple[str, list[Cell]]

LEAST_EXCESS = 1e-4
"""Smaller shares are drawn as 0.01%, as a logarithmic axis has no zero."""


def render_batch(info: BatchInfo) -> str:
    """The page as text: self-contained, with styles, script and drawings inside."""
    left = info.scenarios - len(info.rows)
    have = f"{len(info.rows)} of {info.scenarios} scenarios have a result"
    return fill(
        title=f"Suite {info.name}",
        subtitle=info.description or have,
        strip=_strip(info, left),
        sections=[
            _assertions(info),
            _summary(info),
            sweeps_section(info.sweeps),
            _profiles(info),
            _every_section(info),
        ],
        footer=f"Written by milp-planner. Results of version {', '.join(info.versions) or UNKNOWN}"
        f"{f', the last of {info.finished}' if info.finished else ''}.",
    )


def _strip(info: BatchInfo, left: int) -> list[Fact]:
    note = f"{left} have no result yet" if left else "all have a result"
    found = [Fact("scenarios", f"{info.scenarios:,}", note, "over" if left else "")]
    found += _certified(info)
    found += [
        Fact(status.replace("_", " "), f"{count:,}", "", _STYLE.get(status, ""))
        for status, count in info.counts.items()
    ]
    if info.assertions:
        broken = sum(each.holds is False for each in info.assertions)
        open_ = sum(each.holds is None for each in info.assertions)
        word = f"{open_} not decided" if open_ else "all hold"
        word = f"{broken} of {len(info.assertions)} broken" if broken else word
        style = "over" if broken else "unknown" if open_ else "optimal"
        found.append(Fact("assertions", word, "", style))
    return found


def _certified(info: BatchInfo) -> list[Fact]:
    """The certified gaps, over all plans."""
    gaps = [row.certified_gap for row in info.rows if row.objective is not None]
    known = [gap for gap in gaps if gap is not None]
    if not gaps:
        return []
    if not known:
        return [Fact("certified gap", UNKNOWN, "nothing is certified")]
    note = f"median of {len(known):,} plans; worst {show_gap(max(known))}"
    if known.count(0):
        note += f"; 0 in {known.count(0):,}"
    if len(known) < len(gaps):
        note += f"; {len(gaps) - len(known):,} without"
    return [Fact("certified gap", show_gap(median(known)), note)]


_STYLE = {"optimal": "optimal", "feasible": "feasible", "failed": "over", "unknown": "unknown"}


def _assertions(info: BatchInfo) -> Section | None:
    """Contradictions first, as they cast doubt on everything else, then the assertions."""
    values: list[Cells] = [
        ["contradiction", Cell("broken", over=True), sentence] for sentence in info.contradictions
    ]
    for each in info.assertions:
        word = {True: "holds", False: "does not hold", None: "not decided"}[each.holds]
        many = f"{each.scenarios} scenario{'s' if each.scenarios != 1 else ''}"
        values.append([each.name, Cell(word, over=each.holds is False), many])
        values += [["", Cell("broken", over=True), sentence] for sentence in each.broken]
    if not values:
        return None
    head, caption = ("assertion", "verdict", "where"), "What the suite asserts"
    grid = Grid.of("assertion-rows", "assertions", caption, head, values)
    return Section("assertions", "Assertions", parts=(Part(table=grid),))


def _summary(info: BatchInfo) -> Section:
    text = (
        "Best: number of plans as good as the best that any formulation found for the same "
        "inputs; worst: largest excess over it. Gaps are medians, to the largest bound that any "
        "formulation proved for the same inputs, with a certificate (certified gap) or without. "
        "Solving times are sums."
    )
    return Section("summary", "Formulations", text, parts=(Part(table=summary_grid(info)),))


def _profiles(info: BatchInfo) -> Section | None:
    colours = {name: i for i, name in enumerate(dict.fromkeys(row.series for row in info.rows))}
    drawn = [(each, _draw_profile(each, colours)) for each in info.profiles]
    parts = [Part(_heading(each), drawing.render(), drawing.about) for each, drawing in drawn]
    text = (
        "Performance profiles (Dolan and Moré): on how many of the problems a formulation is "
        "within a factor of the best. The higher curve is the better one; a curve that ends below "
        "100% failed on the rest."
    )
    return Section("profiles", "Performance profiles", text, parts=tuple(parts)) if parts else None


def _heading(profile: Profile) -> str:
    if profile.measure == "seconds":
        return f"Time until the proof, {profile.problems} problems that some formulation proved"
    return f"Minimising {profile.objective_kind}, {profile.problems} problems with a plan"


def _draw_profile(profile: Profile, colours: dict[str, int]) -> Drawing:
    """Share of the problems against the factor, or for objectives against the excess."""
    by_time = profile.measure == "seconds"
    shift = 0.0 if by_time else 1.0
    start = 1.0 if by_time else LEAST_EXCESS
    lines = []
    for curve in profile.curves:
        moved = [(x - shift, y) for x, y in curve.points]
        kept = [(start, curve.at(start + shift)), *((x, y) for x, y in moved if x > start)]
        lines.append(Line(curve.series, kept, colours[curve.series]))
    high = max([10 * start, *(x for line in lines for x, _ in line.points)]) * 1.1
    about = "Best: " + ", ".join(f"{c.series} {show_percent(c.at(1.0))}" for c in profile.curves)
    short = [(c.series, 1 - c.at(float("inf"))) for c in profile.curves]
    if any(share > 0 for _, share in short):
        about += "; failed: " + ", ".join(f"{name} {show_percent(s)}" for name, s in short if s > 0)
    label = "times the fastest" if by_time else "above the best known (left edge: at most 0.01%)"
    shown = (lambda v: f"{v:,.4g}×") if by_time else (lambda v: f"{100 * v:,.4g}%")
    scales = LogScale(start, high), Scale(0, 1)
    return chart(f"Performance profile, {profile.objective_kind or 'time'}", about, lines, scales,
                 (label, "share of problems"), (shown, lambda v: f"{v + 0:.0%}"))  # fmt: skip


def _every_section(info: BatchInfo) -> Section | None:
    """All scenarios; values shared by all of them are stated once, above the table."""
    if not info.rows:
        return None
    shared = shared_ending([row.model for row in info.rows])
    common, shown = [f"models end in {shared}"] if shared else [], []
    for name, cells in _labels(info.rows, len(shared)):
        if len({cell.text for cell in cells}) > 1:
            shown.append((name, cells))
        else:
            common.append(f"{name.removeprefix('#')} {cells[0].text}")
    shown += _answers(info.rows)
    grid = Grid.of(
        "scenarios",
        "scenarios",
        "Every scenario; gaps are to the best bounds certified and known for the same inputs",
        [name.replace("_", " ") for name, _ in shown],
        list(zip(*(cells for _, cells in shown), strict=True)),
    )
    text = f"In all of them: {'; '.join(common)}." if common else ""
    return Section("every", "Every scenario", text, parts=(Part(table=grid),))


def shared_ending(names: Sequence[str]) -> str:
    """The comma-separated settings with which all generated models' names end."""
    tails = [name.split(",")[::-1] for name in dict.fromkeys(names)]
    if len(tails) < 2:
        return ""
    same = 0
    while all(len(tail) > same + 1 and tail[same] == tails[0][same] for tail in tails):
        same += 1
    return "".join(f",{part}" for part in tails[0][:same][::-1])


def _labels(rows: Sequence[Row], cut: int) -> list[_Column]:
    """The columns that identify a scenario; ``cut`` letters are cut off the models' names."""
    axes = dict.fromkeys(axis for row in rows for axis in row.axes)
    options = dict.fromkeys(option for row in rows for option in row.options)
    return [
        ("model", [Cell(row.model[: len(row.model) - cut]) for row in rows]),
        ("cluster", [Cell(row.cluster) for row in rows]),
        *((f"#{a}", [_value(a, row.axes.get(a)) for row in rows]) for a in axes),
        ("objective", [Cell(row.objective_kind) for row in rows]),
        ("formulation", [Cell(row.formulation) for row in rows]),
        *((f"#{o}", [_value(o, row.options.get(o)) for row in rows]) for o in options),
        ("#seed", [Cell(str(row.seed), row.seed) for row in rows]),
    ]


def _answers(rows: Sequence[Row]) -> list[_Column]:
    """The columns of results; a note says why there is no plan."""
    words = [without_share(row.standing).replace("_", " ") for row in rows]
    failed = [row.status == "failed" for row in rows]
    resources = dict.fromkeys(name for row in rows for name in row.headroom)
    free = {name: [row.headroom.get(name) for row in rows] for name in resources}
    rates = [row.per_second for row in rows]
    rate_cells = [_number(rate, show_rate(rate or 0)) for rate in rates]
    varied = len({row.samples for row, rate in zip(rows, rates, strict=True) if rate}) > 1
    found: list[_Column] = [
        ("status", [Cell(w, over=bad) for w, bad in zip(words, failed, strict=True)]),
        ("#value", [_number(r.objective, show_cost(r.objective, "ps")) for r in rows]),
        ("#certified gap", [_number(r.certified_gap, show_gap(r.certified_gap)) for r in rows]),
        ("#gap", [_number(r.best_gap, show_gap(r.best_gap)) for r in rows]),
        ("#bound", [_number(r.bound, show_cost(r.bound, "ps")) for r in rows]),
        ("#above best", [_number(r.above_best, show_gap(r.above_best)) for r in rows]),
        *([("#samples a second", rate_cells)] if varied else []),
        ("#s", [_number(r.seconds, f"{r.seconds or 0:.3g}") for r in rows]),
        *((f"#{name} free", [_number(s, f"{100 * (s or 0):.1f}%", 5) for s in shares])
          for name, shares in free.items()),
    ]  # fmt: skip
    notes = [Cell(row.note if row.objective is None else "") for row in rows]
    return [*found, ("note", notes)] if any(note.text for note in notes) else found


def _value(name: str, value: Any) -> Cell:
    """A cell for an axis or a setting: sizes in bytes, numbers sorted as numbers."""
    if value is None:
        return Cell(UNKNOWN)
    text = show_axis(name, value)
    try:
        return Cell(text, float(value))
    except ValueError:
        return Cell(text)


def _number(value: float | None, text: str, digits: int = 7) -> Cell:
    return Cell(UNKNOWN) if value is None else Cell(text, round(value, digits))
