"""Numbers and figure of docs/dlrmv4.md: ``python benchmarks/dlrmv4/page.py``.

Asks the ledger about the 32-rank run and the planner about the suite ``dlrmv4-incidents``, writes
the marked blocks of the page and draws docs/figures/dlrmv4.svg; with ``--check`` nothing is
written, and the exit code tells whether page and figure are up to date.
"""

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
from benchmarks.dlrmv4.hypotheses import RankBytes, Verdict
from benchmarks.dlrmv4.study import (
    BURST_ROWS,
    CAPACITY,
    CODECS,
    GIB,
    RANKS,
    burst,
    evidence,
    facts,
    hot,
    kept,
    largest_batch,
    outside,
    rows_that_fill,
    verdict,
)
from benchmarks.pages import update
from milp_planner import plan
from milp_planner.features.plan.shortage import shortage_of
from scenarios.batch.assertions import describe
from scenarios.batch.execute import execute
from scenarios.batch.scenario import Scenario, expand
from scenarios.batch.suite import find_suite

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
MEAN_ROWS = 8_070_000
"""Rows of the three tables on a rank, on average, as published."""
STEADY = (208, 238)
"""GiB in use just before window 248, row-wise with the low-memory codec."""
LAYOUTS = {"two_tables": "two tables cut", "all_tables": "all tables cut"}


def blocks() -> dict[str, str]:
    """Every block of derived numbers on the page, by its mark, as Markdown."""
    parts = {
        "facts": _facts(),
        "chosen": _chosen(),
        "needs": _needs(),
        "nearest": _nearest(),
        "refusal": _refusal(),
        "incidents": _incidents(),
    }
    return {name: "\n".join(lines) for name, lines in parts.items()}


def _facts() -> Iterator[str]:
    yield "| | published | held by the rank | rows |"
    yield "|---|---|---|---|"
    for number, fact in enumerate(facts().facts, 1):
        rows = (
            "" if fact.rows is None else " to ".join(f"{n / 1e6:g}" for n in sorted({*fact.rows}))
        )
        layout = fact.layout.replace("_", " ")
        yield (
            f"| {number} | {fact.name} | {layout}, {fact.ranks} ranks | "
            f"{rows and rows + ' million'} |"
        )


def _columns() -> list[tuple[str, Verdict]]:
    """The hypotheses with both codecs as read, by short names."""
    return [
        (f"{copies} {'copy' if copies == 1 else 'copies'}, {words}", verdict(copies, layout))
        for copies in facts().assume.copies
        for layout, words in LAYOUTS.items()
    ]


def _chosen() -> Iterator[str]:
    chosen, one = evidence().chosen, verdict(1, "all_tables")
    more, lone = one.outside.high - chosen.outside.high, hot(dedup=True).need
    missed = [len(v.refuted_by) for _, v in _columns()]
    if chosen.refuted_by or missed.count(0) != 1:
        raise RuntimeError(f"the page says that one hypothesis misses nothing; missed: {missed}")
    yield (
        f"**One hypothesis explains everything; {missed.count(1)} miss one fact each.** It is what "
        "the ledger keeps: two copies, as measured on TorchRec, with all tables cut, outside "
        f"{_gib(chosen.outside.low)} to {_gib(chosen.outside.high)}, of which the model states the "
        f"upper end, {_gib(outside())}. With deduplication, where all row-wise needs {_gib(lone)} "
        f"of embeddings, one copy would put {_gib(more)} more beside them "
        f"(`--reserve outside_embeddings={one.outside.high // 2**20}MiB`)."
    )


def ways() -> list[tuple[str, str, int | None]]:
    """What is compared: its name, the layout, and the rows in the worst batch."""
    return [
        ("all tables column-wise", "all_tables", None),
        ("album_id, artist_id column-wise", "two_tables", None),
        ("all row-wise, published mean skew", "row_wise", None),
        ("all row-wise, burst of window 235", "row_wise", BURST_ROWS),
    ]


def _needs() -> Iterator[str]:
    yield f"| sharding | need, {CODECS[0]} codec | need, {_said(CODECS[1])} codec |"
    yield "|---|---|---|"
    for name, layout, rows in ways():
        cells = [_share(hot(layout, codec, rows).need + outside()) for codec in CODECS]
        yield f"| {name} | {' | '.join(cells)} |"


def _nearest() -> Iterator[str]:
    peak = burst()
    most = rows_that_fill(kept())
    one = hot("album_id", rows=None, peak=peak).need + outside()
    stock = _share(hot("album_id", "stock", peak=peak).need + outside())
    unique = _share(hot(codec="stock", peak=peak, dedup=True).need + outside())
    low = _share(hot(peak=peak).need + outside())
    yield f"Within the {_gib(kept())} that a plan may use, the burst of window 235 fits:"
    yield ""
    yield from (
        f"- all row-wise with the low-memory codec: {low};",
        f"- with it, up to {_millions(most)} rows, or the same ratio to the mean with "
        f"{largest_batch(peak)} samples a rank;",
        f"- all row-wise with deduplication, with either codec (stock: {unique}).",
    )
    yield ""
    yield (
        "It does not fit with `album_id` alone column-wise in the trainer's shards of 128 columns: "
        f"{_share(one)} with the low-memory codec, {stock} with the stock one. Narrower shards, "
        "which the trainer cannot make, do."
    )


def _refusal() -> Iterator[str]:
    wanted = {
        "hbm": CAPACITY, "sharding": "row_wise", "sequence_length": 2627, "codec": "stock",
        "batch": 1024, "peak_skew": 7.34,
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
    sweep = find_suite(SUITE)[0].sweep
    heads = [f"{n:g} ids, {peak:g} x" for peak in sweep.peak_skew for n in sweep.sequence_length]
    yield f"| sharding | codec | samples a rank | {' | '.join(heads)} |"
    yield f"|---|---|---|{'---|' * len(heads)}"
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
    for name, layout, rows in ways():
        for codec in CODECS[::-1]:
            amounts = [*parts_of(hot(layout, codec, rows)), outside()]
            label = f"{name}\n{_said(codec)} codec"
            found.append((label, [round(amount / GIB, 1) for amount in amounts]))
    return found


def parts_of(found: RankBytes) -> list[int]:
    """Bytes of each of :data:`PARTS` at the fullest moment; together all of it."""
    entries = max(found.moments.values(), key=lambda each: sum(each.values()))
    amounts = [sum(entries.get(name, 0) for name in names) for names in PARTS.values()]
    if sum(amounts) != found.need:
        raise RuntimeError(f"parts of {sorted(entries)} are missing from PARTS")
    return amounts


def draw(target: Path) -> None:
    """Draw the hot rank's need, bar by bar, over what was published, its numbers as metadata."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams.update({"svg.hashsalt": "dlrmv4", "svg.fonttype": "none", "font.size": 9})
    figure = Figure(figsize=(8.2, 4.2), layout="constrained")
    axis = figure.subplots()
    rows = bars()[::-1]
    start = [0.0] * len(rows)
    for index, (part, colour) in enumerate(zip((*PARTS, OUTSIDE), COLOURS, strict=True)):
        widths = [amounts[index] for _, amounts in rows]
        axis.barh([name for name, _ in rows], widths, left=start, color=colour, label=part)
        start = [s + w for s, w in zip(start, widths, strict=True)]
    for place, (_, amounts) in enumerate(rows):
        axis.text(sum(amounts) + 3, place, f"{sum(amounts):.0f}", va="center")
    axis.axvspan(*STEADY, color="#ddd", zorder=0, label="in use before window 248, row-wise")
    capacity = CAPACITY / GIB
    axis.axvline(capacity, color="black", lw=1, ls="--", label=f"{capacity:.0f} GiB of a rank")
    axis.set(xlabel="GiB on the hot rank", xlim=(0, 400))
    axis.set_title(f"{RANKS} ranks; {_gib(outside())} outside, as fitted to the facts")
    axis.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    figure.savefig(target, metadata={"Date": None, "Description": _numbers()})


def _numbers() -> str:
    return json.dumps([RANKS, bars()])


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
