"""A batch as one HTML file."""

from __future__ import annotations

from milp_planner.report.batch.curves import Bins, Cactus, Profile
from milp_planner.report.batch.info import BatchInfo
from milp_planner.report.html.batch_rows import every_section
from milp_planner.report.html.parts import Cell, Fact, Grid, Part, Section, Values, columns, rows
from milp_planner.report.html.series import Line, LogScale, chart, swarm
from milp_planner.report.html.shell import fill
from milp_planner.report.html.svg import Drawing, Scale
from milp_planner.report.units import UNKNOWN, show_gap, show_percent, show_seconds

LEAST = 1e-4
"""Shares below 0.01% are drawn as 0.01%: a logarithmic axis has no zero."""


def render_batch(info: BatchInfo) -> str:
    """The page as text: styles, script and drawings inside, nothing fetched from anywhere."""
    left = info.scenarios - len(info.rows)
    have = f"{len(info.rows)} of {info.scenarios} scenarios have a result"
    return fill(
        title=f"Suite {info.name}",
        subtitle=info.description or have,
        strip=_strip(info, left),
        sections=[
            _assertions(info),
            _summary(info),
            _profiles(info),
            _cactus(info),
            _bins(info),
            every_section(info),
        ],
        footer=f"Written by milp-planner. Results of version {', '.join(info.versions) or UNKNOWN}"
        f"{f', the last of {info.finished}' if info.finished else ''}.",
    )


def _strip(info: BatchInfo, left: int) -> list[Fact]:
    note = f"{left} have no result yet" if left else "all have a result"
    found = [Fact("scenarios", f"{info.scenarios:,}", note, "over" if left else "")]
    found += [
        Fact(status.replace("_", " "), f"{count:,}", "", _STYLE.get(status, ""))
        for status, count in info.counts.items()
    ]
    if info.assertions:
        broken = sum(not each.holds for each in info.assertions)
        word = f"{broken} of {len(info.assertions)} broken" if broken else "all hold"
        found.append(Fact("assertions", word, "", "over" if broken else "optimal"))
    return found


_STYLE = {"optimal": "optimal", "feasible": "feasible", "failed": "over", "unknown": "unknown"}


def _assertions(info: BatchInfo) -> Section | None:
    """Assertions, and what contradicts itself: that comes first, for nothing else is then sure."""
    values: Values = [["contradiction", Cell("broken", over=True), sentence]
                      for sentence in info.contradictions]  # fmt: skip
    for each in info.assertions:
        word = "holds" if each.holds else "does not hold"
        many = f"{each.scenarios} scenario{'s' if each.scenarios != 1 else ''}"
        values.append([each.name, Cell(word, over=not each.holds), many])
        values += [["", Cell("broken", over=True), sentence] for sentence in each.broken]
    if not values:
        return None
    head = columns("assertion", "verdict", "where")
    grid = Grid("assertion-rows", "assertions", "What the suite asserts", head, rows(values))
    return Section("assertions", "Assertions", parts=(Part(table=grid),))


def _summary(info: BatchInfo) -> Section:
    statuses = list(info.counts)
    head = columns("formulation", "objective", *(f"#{s.replace('_', ' ')}" for s in statuses),
                   "#equal to the best", "#worst above it", "#median gap", "#solving")  # fmt: skip
    values: Values = [
        [
            row.series, row.objective_kind,
            *(Cell(str(row.counts[s]) if row.counts[s] else "", row.counts[s]) for s in statuses),
            Cell(str(row.equal), row.equal), Cell(show_gap(row.worst), row.worst),
            Cell(show_gap(row.gap), row.gap), Cell(show_seconds(row.seconds), row.seconds),
        ]
        for row in info.summary
    ]  # fmt: skip
    text = (
        "The best: the least objective that any formulation found for the same inputs. Gaps are to "
        "the largest bound that any proved; solving times are sums."
    )
    grid = Grid("summary-rows", "formulations", "One row a formulation and objective", head,
                rows(values))  # fmt: skip
    return Section("summary", "Formulations", text, parts=(Part(table=grid),))


def _profiles(info: BatchInfo) -> Section | None:
    parts = [_part(_heading(each), draw_profile(each, _colours(info))) for each in info.profiles]
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


def draw_profile(profile: Profile, colours: dict[str, int]) -> Drawing:
    """Share of the problems against the factor; for objectives the axis is the excess."""
    by_time = profile.measure == "seconds"
    shift = 0.0 if by_time else 1.0
    start = 1.0 if by_time else LEAST
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
    scales = LogScale(start, high, 0, 0), Scale(0, 1, 0, 0)
    return chart(f"Performance profile, {profile.objective_kind or 'time'}", about, lines, scales,
                 (label, "share of problems"), (shown, lambda v: f"{v + 0:.0%}"))  # fmt: skip


def _cactus(info: BatchInfo) -> Section | None:
    cactus = info.cactus
    if not cactus.curves:
        return None
    provers = {curve.series.split()[0] for curve in cactus.curves}
    none = dict.fromkeys(n.split()[0] for n in cactus.scenarios if n.split()[0] not in provers)
    text = "How many scenarios are proved, optimal or infeasible, when each is given that long."
    if none:
        text += f" {', '.join(none)} proved none."
    drawing = draw_cactus(cactus, _colours(info))
    return Section("cactus", "Proofs against time", text, parts=(_part("", drawing),))


def draw_cactus(cactus: Cactus, colours: dict[str, int]) -> Drawing:
    """Number proved against seconds each."""
    times = [x for curve in cactus.curves for x, _ in curve.points]
    low = max(1e-3, min(times))
    lines = [
        Line(c.series, [(low, 0.0), *c.points], colours[c.series]) for c in cactus.curves
    ]  # fmt: skip
    most = max(y for curve in cactus.curves for _, y in curve.points)
    about = "; ".join(
        f"{c.series}: {len(c.points)} of {cactus.scenarios[c.series]} proved, the slowest in "
        f"{show_seconds(c.points[-1][0])}"
        for c in cactus.curves
    )
    scales = LogScale(low, max(times) * 1.1 + low, 0, 0), Scale(0, most, 0, 0)
    return chart("Cactus plot", about, lines, scales, ("seconds each", "scenarios proved"),
                 (lambda v: f"{v:g}", lambda v: f"{v + 0:g}"))  # fmt: skip


def _bins(info: BatchInfo) -> Section | None:
    if not info.bins:
        return None
    parts: list[Part] = []
    for number, each in enumerate(info.bins):
        heading = f"{each.option}, minimising {each.objective_kind}"
        parts += [
            _part(heading, draw_bins(each)),
            Part(table=bins_grid(each, f"bins-{number}", heading)),
        ]
    text = "Every dot is a scenario: its plan's gap to the best bound of any formulation."
    return Section("bins", "Bins of the DP against gap", text, parts=tuple(parts))


def draw_bins(bins: Bins) -> Drawing:
    """A column of dots for each number of bins."""
    gaps = [point.gap for point in bins.points]
    least = LEAST if min(gaps, default=0) < 0.01 else 0.01
    up = LogScale(least, max([10 * least, *gaps]) * 1.2, 0, 0)
    found = []
    for column in bins.columns:
        mine = [point for point in bins.points if point.bins == column.bins]
        dots = [(point.gap, f"{point.where}: gap {show_gap(point.gap)}") for point in mine]
        words = f"{column.exact} of {column.scenarios} at 0"
        if column.scenarios <= 2:
            words = show_gap(column.median)
        found.append((f"{column.bins:,}", words, dots))
    about = "; ".join(
        f"{c.bins} bins: {c.exact} of {c.scenarios} at 0, median {show_gap(c.median)}, worst "
        f"{show_gap(c.worst)}"
        for c in bins.columns
    )
    return swarm(f"{bins.option} against gap, {bins.objective_kind}", about, found, up,
                 (bins.option, "gap"), _percent)  # fmt: skip


def bins_grid(bins: Bins, name: str, caption: str) -> Grid:
    """The same as a table."""
    head = columns("#bins", "#scenarios", "#with a plan", "#gap 0", "#median gap", "#worst gap",
                   "#median time")  # fmt: skip
    values: Values = [
        [
            Cell(f"{c.bins:,}", c.bins), Cell(str(c.scenarios), c.scenarios),
            Cell(str(c.found), c.found), Cell(str(c.exact), c.exact),
            Cell(show_gap(c.median), c.median), Cell(show_gap(c.worst), c.worst),
            Cell(UNKNOWN if c.seconds is None else show_seconds(c.seconds), c.seconds),
        ]
        for c in bins.columns
    ]  # fmt: skip
    return Grid(name, caption, caption, head, rows(values))


def _percent(value: float) -> str:
    return "≤0.01%" if value <= LEAST * 1.001 else f"{100 * value:g}%"


def _colours(info: BatchInfo) -> dict[str, int]:
    return {name: i for i, name in enumerate(dict.fromkeys(row.series for row in info.rows))}


def _part(heading: str, drawing: Drawing) -> Part:
    return Part(heading, drawing.render(), drawing.about)
