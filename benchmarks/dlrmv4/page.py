"""Numbers and figure of docs/dlrmv4.md: ``python benchmarks/dlrmv4/page.py``.

Prices both shardings of the 32-rank run, writes what stands between the marks of the page and draws
docs/figures/dlrmv4.svg; with ``--check`` nothing is written, and the exit code tells whether page
and figure are up to date.
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
from scenarios.batch.assertions import describe
from scenarios.batch.execute import execute
from scenarios.batch.scenario import expand
from scenarios.batch.suite import find_suite
from scenarios.studies.dlrmv4_hot_ids import (
    BURST_ROWS,
    CAPACITY,
    CODECS,
    COLUMN_WISE_SHARE,
    GIB,
    LENGTHS,
    PUBLISHED,
    Hot,
    Study,
    distinct_rows,
    study,
)

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "dlrmv4.md"
FIGURE = ROOT / "docs" / "figures" / "dlrmv4.svg"
SUITE = "dlrmv4-incidents"
PARTS = ("tables, ids", "outside the embeddings", "exchange")
COLOURS = ("#2f6690", "#b9b9b9", "#d1495b")


def blocks(found: Study) -> dict[str, str]:
    """Everything that the page says in derived numbers, by its marks, as Markdown."""
    parts = {
        "setting": _setting(found),
        "needs": _needs(found),
        "explained": _explained(found),
        "findings": _findings(found),
        "lengths": _lengths(),
        "incidents": _incidents(),
    }
    return {name: "\n".join(lines) for name, lines in parts.items()}


def ways(found: Study) -> list[tuple[str, Hot, int | None]]:
    """What is compared: its name, the hot rank, and the rows that it returns instead of its own."""
    return [
        ("album_id, artist_id column-wise", found.column, None),
        ("all row-wise, published mean skew", found.row, None),
        ("all row-wise, published burst", found.row, BURST_ROWS),
    ]


def _setting(found: Study) -> Iterator[str]:
    low, stock = (found.outside(codec) for codec in CODECS.values())
    yield (
        f"{found.ranks} ranks. Tables on the hot rank: {_gib(found.row.tables)}. Outside the "
        f"embeddings, as calibrated: {_gib(low)} if the low-memory codec ran at the 58%, "
        f"{_gib(stock)} if the stock one did. Rows that the hot rank is predicted to return in a "
        f"step: {_millions(found.row.rows)} row-wise, {_millions(found.column.rows)} (counted in "
        f"full rows) column-wise; published for the failure: {_millions(BURST_ROWS)}. With "
        f"deduplication all {found.ranks} ranks together would return "
        f"{_millions(distinct_rows())} rows of the sequence tables."
    )


def _needs(found: Study) -> Iterator[str]:
    yield "| calibrated with | sharding | need, stock codec | need, low-memory codec |"
    yield "|---|---|---|---|"
    for calibrated, codec in CODECS.items():
        outside = found.outside(codec)
        for name, hot, rows in ways(found):
            cells = [_share(hot.need(CODECS[c], outside, rows)) for c in ("stock", "low-memory")]
            yield f"| {calibrated} | {name} | {' | '.join(cells)} |"


def _explained(found: Study) -> Iterator[str]:
    codec = CODECS["low-memory"]
    yield "| published, row-wise | GiB | rows that explain it | over the prediction |"
    yield "|---|---|---|---|"
    for name, held in PUBLISHED.items():
        rows = found.row.rows_for(held, codec, found.outside(codec))
        yield (
            f"| {name} | {held / GIB:.0f} | {_millions(rows)} | {rows / found.row.rows:.2f} times |"
        )


def _findings(found: Study) -> Iterator[str]:
    codec = CODECS["low-memory"]
    outside = found.outside(codec)
    left = CAPACITY - found.row.need(codec, outside, BURST_ROWS)
    more = found.row.rows_for(CAPACITY, codec, outside) / BURST_ROWS - 1
    yield (
        f"Calibrated with the low-memory codec, the published burst leaves {_gib(left)} under it; "
        f"16 GiB were seen before the second failure, which needs a burst {more:.0%} larger."
    )


def _lengths() -> Iterator[str]:
    codec = CODECS["low-memory"]
    yield "| ids a sample | what it is | row-wise, mean skew | hot rank's rows | stock, burst |"
    yield "|---|---|---|---|---|"
    for length, source in LENGTHS.items():
        found = study(length=length)
        outside = found.outside(codec)
        mean = _share(found.row.need(codec, outside))
        burst = _share(found.row.need(CODECS["stock"], outside, BURST_ROWS))
        yield f"| {length} | {source} | {mean} | {_millions(found.row.rows)} | {burst} |"


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
    for scenario in expand(*find_suite(SUITE)):
        axes = dict(scenario.axes)
        if axes["hbm"] != CAPACITY:
            continue
        record = execute(scenario, scenario.key())
        if record["status"] not in ("optimal", "infeasible"):
            raise RuntimeError(f"{describe(scenario)}: {record['status']}, neither proved")
        found.append((axes, record.get("hbm_used")))
    return found


def _gib(amount: int) -> str:
    return f"{amount / GIB:.1f} GiB"


def _share(amount: int) -> str:
    return f"{_gib(amount)}, {amount / CAPACITY:.0%}"


def _millions(rows: float) -> str:
    return f"{rows / 1e6:.1f} million"


def bars(found: Study) -> list[tuple[str, list[float]]]:
    """The figure's bars, calibrated with the low-memory codec: label, and GiB of each part."""
    outside = found.outside(CODECS["low-memory"])
    found_bars = []
    for name, hot, rows in ways(found):
        for codec, peak in CODECS.items():
            amounts = (hot.tables, outside, hot.need(peak, outside, rows) - hot.tables - outside)
            label = f"{name}\n{codec} codec"
            found_bars.append((label, [round(amount / GIB, 1) for amount in amounts]))
    return found_bars


def draw(found: Study, target: Path) -> None:
    """Need of the hot rank, bar by bar, over what was published; its numbers in the metadata."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams.update({"svg.hashsalt": "dlrmv4", "svg.fonttype": "none", "font.size": 9})
    figure = Figure(figsize=(8.2, 3.4), layout="constrained")
    axis = figure.subplots()
    rows = bars(found)[::-1]
    start = [0.0] * len(rows)
    for index, (part, colour) in enumerate(zip(PARTS, COLOURS, strict=True)):
        widths = [amounts[index] for _, amounts in rows]
        axis.barh([name for name, _ in rows], widths, left=start, color=colour, label=part)
        start = [s + w for s, w in zip(start, widths, strict=True)]
    for place, (_, amounts) in enumerate(rows):
        axis.text(sum(amounts) + 3, place, f"{sum(amounts):.0f}", va="center")
    steady = [PUBLISHED[f"steady, {end}"] / GIB for end in ("from", "to")]
    axis.axvspan(*steady, color="#ddd", zorder=0, label="held in steady state, row-wise")
    capacity = CAPACITY / GIB
    axis.axvline(capacity, color="black", lw=1, ls="--", label=f"{capacity:.0f} GiB of a rank")
    axis.set(xlabel="GiB on the hot rank", xlim=(0, 375))
    axis.set_title(
        f"{found.ranks} ranks; calibrated on the {COLUMN_WISE_SHARE:.0%} with the low-memory codec"
    )
    axis.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    figure.savefig(target, metadata={"Date": None, "Description": _numbers(found)})


def _numbers(found: Study) -> str:
    return json.dumps([found.ranks, bars(found)])


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
    found = study()
    if not check:
        draw(found, FIGURE)
    stale = drawn(FIGURE) != json.loads(_numbers(found))
    return update(PAGE, blocks(found), check=check) or int(stale)


if __name__ == "__main__":
    sys.exit(main())
