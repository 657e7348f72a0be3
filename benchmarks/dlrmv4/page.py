"""Numbers and figure of docs/dlrmv4.md: ``python benchmarks/dlrmv4/page.py``.

Asks the ledger about the 32-rank run and the planner about the suite ``dlrmv4-incidents``, writes
the marked blocks of the page and draws docs/figures/dlrmv4.svg; with ``--check`` nothing is
written, and the exit code tells whether page and figure are up to date.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import update
from milp_planner import plan
from milp_planner.features.plan.shortage import shortage_of
from scenarios.batch.assertions import describe
from scenarios.batch.execute import execute
from scenarios.batch.scenario import Scenario, expand
from scenarios.batch.suite import find_suite
from scenarios.studies.dlrmv4_hot_ids import (
    BURST_ROWS,
    CAPACITY,
    CODECS,
    COLUMN_WISE_SHARE,
    GIB,
    LENGTHS,
    MOVED,
    PUBLISHED,
    Hot,
    burst,
    calibrated,
    hot,
    kept,
    largest_batch,
    outside,
    peak_for,
    run,
)

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "dlrmv4.md"
FIGURE = ROOT / "docs" / "figures" / "dlrmv4.svg"
SUITE = "dlrmv4-incidents"
PARTS = {
    "rows and optimizer state": ("weights", "state"),
    "ids": ("inputs", "lengths"),
    "looked-up rows and their permuted copy": ("output", "send_buffer"),
    "the codec's copies": ("encoding",),
    "received": ("receive_buffer",),
}
FITS = {True: "fits", False: "does not fit", None: "not found out"}
OUTSIDE = "outside the embeddings"
COLOURS = ("#2f6690", "#b9b9b9", "#66a182", "#d1495b", "#edae49", "#8d6a9f")


def blocks() -> dict[str, str]:
    """Every block of derived numbers on the page, by its mark, as Markdown."""
    parts = {
        "setting": _setting(),
        "needs": _needs(),
        "explained": _explained(),
        "clamp": _clamp(),
        "second": _second(),
        "nearest": _nearest(),
        "lengths": _lengths(),
        "ratio": _ratio(),
        "refusal": _refusal(),
        "incidents": _incidents(),
    }
    return {name: "\n".join(lines) for name, lines in parts.items()}


def ways() -> list[tuple[str, tuple[str, ...], float | None]]:
    """What is compared: its name, the tables column-wise, and the load in the worst batch."""
    return [
        ("album_id, artist_id column-wise", MOVED, None),
        ("all row-wise, published mean skew", (), None),
        ("all row-wise, published burst", (), burst()),
    ]


def _setting() -> Iterator[str]:
    row, column = hot(), hot(MOVED)
    tables = sum(row.entries[name] for name in PARTS["rows and optimizer state"])
    everyone = run()[1].num_ranks * hot(dedup=True).rows
    yield (
        f"{run()[1].num_ranks} ranks. Rows and state on the hot rank: {_gib(tables)}. Embeddings "
        f"and their exchange, column-wise: {_gib(column.need)}, so {_gib(calibrated())} are left "
        f"outside them at the {COLUMN_WISE_SHARE:.0%}; the model states {_gib(outside())}. Rows "
        f"that the hot rank returns in its worst step by the mean skew: {_millions(row.rows)} "
        f"row-wise, {_millions(column.rows)} (counted in full rows) column-wise; published for the "
        f"failure: {_millions(BURST_ROWS)}. With deduplication, {run()[1].num_ranks} ranks as busy "
        f"as the hot one would return {_millions(everyone)} rows together."
    )


def _needs() -> Iterator[str]:
    yield f"| sharding | need, {CODECS[0]} codec | need, {_said(CODECS[1])} codec |"
    yield "|---|---|---|"
    for name, column_wise, peak in ways():
        cells = [_share(hot(column_wise, codec, peak).need + outside()) for codec in CODECS]
        yield f"| {name} | {' | '.join(cells)} |"


def _explained() -> Iterator[str]:
    yield "| published, row-wise | GiB | rows that explain it | over the prediction |"
    yield "|---|---|---|---|"
    for name, held in PUBLISHED.items():
        rows = hot(peak=peak_for(held)).rows
        over = rows / hot().rows
        yield f"| {name} | {held / GIB:.0f} | {_millions(rows)} | {over:.2f} times |"


def _clamp() -> Iterator[str]:
    found = hot(codec="stock", peak=burst())
    copy = found.entries["output"]
    before = found.need - found.entries["encoding"] + outside()
    yield (
        f"By the ledger, when the clamp asks for its {_gib(copy)} the hot rank holds "
        f"{_gib(outside())} outside the embeddings, {_gib(before - outside() - 2 * copy)} of rows, "
        f"ids and what it receives, and the looked-up rows twice: {_gib(before)} of "
        f"{CAPACITY / GIB:.0f}. With one copy of them {_gib(CAPACITY - before + copy)} would be "
        "free, and the request would succeed."
    )


def _second() -> Iterator[str]:
    need = hot(peak=burst()).need + outside()
    at_most, crash = (hot(peak=peak_for(PUBLISHED[name])).rows for name in ("steady, to", "crash"))
    yield (
        f"With the low-memory codec the published burst needs {_gib(need)}: it does not fit, and "
        f"a burst of {_millions(crash)} rows would already fill the {CAPACITY / GIB:.0f} GiB. "
        "**This is more than was published**: that run passed window 235 and failed at 248, at "
        f"{PUBLISHED['steady, to'] / GIB:.0f} GiB at most until then, which is "
        f"{_millions(at_most)} rows."
    )


def _nearest() -> Iterator[str]:
    peak = burst()
    mean = hot(peak=peak).rows
    most = hot(peak=peak_for(kept())).rows
    one = hot(("album_id",), peak=peak).need + outside()
    stock = _share(hot(("album_id",), "stock", peak).need + outside())
    unique = _share(hot(codec="stock", peak=peak, dedup=True).need + outside())
    cut = "the same burst with `album_id` alone column-wise"
    yield f"Within the {_gib(kept())} that a plan may use, these fit with the low-memory codec:"
    yield ""
    yield from (
        f"- {cut}: {_share(one)} (stock: {stock}, too much);",
        f"- all row-wise, a burst of {_millions(most)} rows, {most / mean:.0%} of the published;",
        f"- all row-wise, the same ratio to the mean, with {largest_batch(peak)} samples a rank;",
        f"- all row-wise with deduplication, with either codec (stock: {unique}).",
    )


def _lengths() -> Iterator[str]:
    yield "| ids a sample | what it is | column-wise | row-wise, mean skew | stock, burst |"
    yield "|---|---|---|---|---|"
    for length, source in LENGTHS.items():
        found = (
            hot(MOVED, length=length),
            hot(length=length),
            hot(codec="stock", peak=burst(length), length=length),
        )
        cells = [_share(each.need + outside()) for each in found]
        yield f"| {length} | {source} | {' | '.join(cells)} |"


def _ratio() -> Iterator[str]:
    [ratio] = find_suite(SUITE)[0].sweep.peak_skew
    yield (
        f"The burst is given as `peak_skew` of album_id and artist_id: {ratio:g} times their mean, "
        f"which with item_id at its tail makes {_millions(hot(peak=ratio).rows)} rows."
    )


def _refusal() -> Iterator[str]:
    wanted = {
        "hbm": CAPACITY, "sharding": "row_wise", "sequence_length": 2627, "codec": "stock",
        "batch": 1024,
    }  # fmt: skip
    [scenario] = [s for s in _whole() if wanted.items() <= dict(s.axes).items()]
    found = shortage_of(plan(*scenario.inputs(), time_limit=20).outcome.detail)
    if found is None or found.forced is None:
        raise RuntimeError("the burst is not refused")
    yield f"> {found.forced}"
    for remedy in found.remedies:
        yield ">"
        yield f"> {remedy}: {FITS[remedy.fits]}"


def _incidents() -> Iterator[str]:
    lengths = find_suite(SUITE)[0].sweep.sequence_length
    yield f"| sharding | codec | samples a rank | {' | '.join(f'{n:g} ids' for n in lengths)} |"
    yield f"|---|---|---|{'---|' * len(lengths)}"
    rows: dict[tuple[object, ...], list[str]] = {}
    for axes, used in _judged():
        cells = rows.setdefault((axes["sharding"], axes["codec"], axes["batch"]), [])
        cells.append("refused" if used is None else f"{used:.1%}")
    for head, cells in rows.items():
        yield f"| {' | '.join(map(str, [*head, *cells]))} |"


@cache
def _judged() -> list[tuple[dict[str, Any], float | None]]:
    """Axes of the suite's scenarios with all of a rank's memory, and the share of it in use."""
    found = []
    for scenario in _whole():
        axes = dict(scenario.axes)
        record = execute(scenario, scenario.key())
        if record["status"] not in ("optimal", "infeasible"):
            raise RuntimeError(f"{describe(scenario)}: {record['status']}, neither proved")
        found.append((axes, record.get("hbm_used")))
    return found


def _whole() -> list[Scenario]:
    """The suite's scenarios with all of a rank's memory."""
    return [s for s in expand(*find_suite(SUITE)) if dict(s.axes)["hbm"] == CAPACITY]


def _said(name: str) -> str:
    return name.replace("_", "-")


def _gib(amount: int) -> str:
    return f"{amount / GIB:.1f} GiB"


def _share(amount: int) -> str:
    return f"{_gib(amount)}, {amount / CAPACITY:.0%}"


def _millions(rows: float) -> str:
    return f"{rows / 1e6:.1f} million"


def bars() -> list[tuple[str, list[float]]]:
    """The figure's bars: label, and GiB of each part and of what is outside."""
    found = []
    for name, column_wise, peak in ways():
        for codec in CODECS[::-1]:
            amounts = [*parts_of(hot(column_wise, codec, peak)), outside()]
            label = f"{name}\n{_said(codec)} codec"
            found.append((label, [round(amount / GIB, 1) for amount in amounts]))
    return found


def parts_of(found: Hot) -> list[int]:
    """Bytes of each of :data:`PARTS` at the fullest moment; together all of it."""
    amounts = [sum(found.entries.get(name, 0) for name in names) for names in PARTS.values()]
    if sum(amounts) != found.need:
        raise RuntimeError(f"parts of {sorted(found.entries)} are missing from PARTS")
    return amounts


def draw(target: Path) -> None:
    """Draw the hot rank's need, bar by bar, over what was published, its numbers as metadata."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams.update({"svg.hashsalt": "dlrmv4", "svg.fonttype": "none", "font.size": 9})
    figure = Figure(figsize=(8.2, 3.4), layout="constrained")
    axis = figure.subplots()
    rows = bars()[::-1]
    start = [0.0] * len(rows)
    for index, (part, colour) in enumerate(zip((*PARTS, OUTSIDE), COLOURS, strict=True)):
        widths = [amounts[index] for _, amounts in rows]
        axis.barh([name for name, _ in rows], widths, left=start, color=colour, label=part)
        start = [s + w for s, w in zip(start, widths, strict=True)]
    for place, (_, amounts) in enumerate(rows):
        axis.text(sum(amounts) + 3, place, f"{sum(amounts):.0f}", va="center")
    steady = [PUBLISHED[f"steady, {end}"] / GIB for end in ("from", "to")]
    axis.axvspan(*steady, color="#ddd", zorder=0, label="held in steady state, row-wise")
    capacity = CAPACITY / GIB
    axis.axvline(capacity, color="black", lw=1, ls="--", label=f"{capacity:.0f} GiB of a rank")
    axis.set(xlabel="GiB on the hot rank", xlim=(0, 440))
    axis.set_title(f"{run()[1].num_ranks} ranks; calibrated on the {COLUMN_WISE_SHARE:.0%} alone")
    axis.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    figure.savefig(target, metadata={"Date": None, "Description": _numbers()})


def _numbers() -> str:
    return json.dumps([run()[1].num_ranks, bars()])


def drawn(target: Path) -> Any:
    """The numbers from which a figure was drawn; None without a figure."""
    if not target.exists():
        return None
    [text] = re.findall(r"<dc:description>(.*?)</dc:description>", target.read_text(), re.S)
    return json.loads(unescape(text))


def main() -> int:
    """Write page and figure, or check them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only tell whether they are current")
    check = parser.parse_args().check
    if not check:
        draw(FIGURE)
    stale = drawn(FIGURE) != json.loads(_numbers())
    return update(PAGE, blocks(), check=check) or int(stale)


if __name__ == "__main__":
    sys.exit(main())
