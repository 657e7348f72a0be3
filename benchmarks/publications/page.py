"""docs/trust/publications.md: prices against published steps.

``python benchmarks/publications/page.py`` prices every plan of ``published.yaml`` and writes the
page's tables and picture; with ``--check``, the exit code tells whether the tables are current.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.fbgemm.profiles import pass_seconds
from benchmarks.pages import update
from benchmarks.publications.figure import draw
from benchmarks.publications.models import model_files
from benchmarks.publications.pricing import (
    MODEL,
    PHASES,
    WAYS,
    Priced,
    one_pass,
    priced,
    published,
    sharding_of,
)
from scenarios import catalog

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "trust" / "publications.md"
TIE = 0.02
"""Steps are equal within this share of the published ones, whose logs vary by 1 to 2%; so are ours,
as the part that we do not price is the same."""
OURS = "FBGEMM, ids as published"
"""Which of the ways all tables below the first use."""


def blocks() -> dict[str, str]:
    """Every table of the page, by its mark."""
    parts = {
        "ab": _ab(), "plans": _plans(), "terms": _terms(), "split": _split(),
        "breakdown": _breakdown(), "one_pass": _one_pass(),
        "slopes": _slopes(), "mlperf": _mlperf(), "ranking": _ranking(),
        "overlap": _overlap(),
    }  # fmt: skip
    return {name: "\n".join(lines) for name, lines in parts.items()}


@cache
def _priced(kind: str, way: str = OURS) -> list[Priced]:
    return [priced(row, WAYS[way]) for row in published()[kind]]


def _ab() -> Iterator[str]:
    heads = " | ".join(f"ours, {name} | difference | of published" for name in WAYS)
    yield f"| batch | published, ms | difference | {heads} |"
    yield f"|---|---|---|{'---|---|---|' * len(WAYS)}"
    rows = published()["ab"]
    for first in range(0, len(rows), 2):
        slow, fast = rows[first : first + 2]
        gap = slow["ms"] - fast["ms"]
        cells = [f"{slow['batch']:,}", f"{slow['ms']:.2f}, {fast['ms']:.2f}", f"**{gap:.2f}**"]
        for name in WAYS:
            ours = [each.step for each in _priced("ab", name)[first : first + 2]]
            mine = ours[0] - ours[1]
            times = ", ".join(f"{step:.2f}" for step in ours)
            cells += [times, f"**{mine:.2f}**", f"{mine / gap:.0%}"]
        yield f"| {' | '.join(cells)} |"


def _beside() -> dict[str, list[float]]:
    """Our milliseconds of the A/B's rows, by way of pricing, for the picture."""
    return {
        "ours,\n" + name.replace(", ", ",\n"): [each.step for each in _priced("ab", name)]
        for name in WAYS
    }


def _plans() -> Iterator[str]:
    yield "| GPU | round_robin: tables | ids a sample | auto: tables (parts) | ids a sample |"
    yield "|---|---|---|---|---|"
    hotness = [table.lookups_per_sample for table in catalog.find_model(MODEL).tables]
    plans = [sharding_of(row)[0] for row in published()["ab"][:2]]
    loads = [each.loads(hotness, 8) for each in plans]
    for gpu in range(8):
        cells = []
        for each, load in zip(plans, loads, strict=True):
            here = [(t, len(places)) for t, places in enumerate(each.places) if gpu in places]
            names = (f"{t} (1/{parts})" if parts > 1 else str(t) for t, parts in here)
            cells += [", ".join(names), f"{load[gpu]:g}"]
        yield f"| {gpu} | {' | '.join(cells)} |"
    everywhere = ", ".join(map(str, plans[1].replicated))
    yield f"| all | – | | {everywhere} | {sum(hotness[t] for t in plans[1].replicated):g} / 8 |"


def _terms() -> Iterator[str]:
    yield f"| batch | plan | {' | '.join(PHASES)} | embeddings' part |"
    yield f"|---|---|{'---|' * (len(PHASES) + 1)}"
    for row, found in zip(published()["ab"], _priced("ab"), strict=True):
        cells = " | ".join(f"{found.phases[name]:.3f}" for name in PHASES)
        yield f"| {row['batch']:,} | {row['plan']} | {cells} | {found.step:.3f} |"


def _split() -> Iterator[str]:
    """The difference of the two plans, term by term."""
    rows = published()["ab"]
    terms: dict[str, list[float]] = {}
    for first in range(0, len(rows), 2):
        gap = rows[first]["ms"] - rows[first + 1]["ms"]
        slow, fast = _priced("ab")[first : first + 2]
        parts = {name: slow.phases[name] - fast.phases[name] for name in PHASES}
        found = {
            "lookup of the busiest GPU": parts["lookup"],
            "its gradients and update": parts["update"],
            "exchanges": parts["exchange"] + parts["gradients"],
            "not explained": gap - slow.step + fast.step,
            "**published difference**": gap,
        }
        for name, ms in found.items():
            terms.setdefault(name, []).append(ms)
    heads = [f"{row['batch']:,}" for row in rows[::2]]
    yield f"| ms at batch | {' | '.join(heads)} |"
    yield f"|---|{'---|' * (len(rows) // 2)}"
    for name, each in terms.items():
        yield f"| {name} | {' | '.join(f'{ms:+.2f}' for ms in each)} |"


def _breakdown() -> Iterator[str]:
    found = _priced("ab")[1]
    work = found.phases["lookup"] + found.phases["update"]
    sent = found.phases["exchange"] + found.phases["gradients"]
    ours = {
        "embedding kernels": f"{work:.2f} (lookup and update of the busiest GPU)",
        "SendRecv, 4 calls": f"{sent:.2f} (two exchanges of embeddings; no ids, no waiting)",
    }
    yield "| kernels | published, ms | ours, ms |"
    yield "|---|---|---|"
    for name, ms in published()["breakdown"].items():
        yield f"| {name} | {ms:.2f} | {ours.get(name, 'not priced')} |"


def _one_pass() -> Iterator[str]:
    ms = published()["one_pass"]["ms"]
    yield "| one pass over the rows of 80 weighted tables | ms | of published |"
    yield "|---|---|---|"
    yield f"| B200, published: the step without it is faster by | {ms} | |"
    for words, ours in (
        ("H100, the same kernel and tables, measured here", 1e3 * pass_seconds()),
        ("B200, our lookup of these tables, data sheet", one_pass()),
    ):
        yield f"| {words} | {ours:.1f} | {ours / ms:.0%} |"


def _slopes() -> Iterator[str]:
    yield "| system, plan | batches | published, ns a sample | ours, ns a sample | of published |"
    yield "|---|---|---|---|---|"
    rows, found = published()["slopes"], _priced("slopes")
    order = sorted(range(len(rows)), key=lambda i: (rows[i]["system"], rows[i]["plan"]))
    for (system, plan), group in itertools.groupby(
        order, key=lambda i: (rows[i]["system"], rows[i]["plan"])
    ):
        chosen = sorted(group, key=lambda i: rows[i]["batch"])
        batches = [rows[i]["batch"] for i in chosen]
        theirs = _slope(batches, [rows[i]["ms"] for i in chosen])
        ours = _slope(batches, [found[i].step for i in chosen])
        span = f"{batches[0]:,} to {batches[-1]:,}"
        yield f"| {system}, {plan} | {span} | {theirs:.1f} | {ours:.1f} | {ours / theirs:.0%} |"


def _slope(batches: Sequence[float], times: Sequence[float]) -> float:
    """ns a sample of c + slope · batch, least squares of the relative errors."""
    import numpy as np

    weights = 1 / np.array(times)
    columns = np.stack([weights, weights * np.array(batches)], axis=1)
    return float(np.linalg.lstsq(columns, np.ones(len(times)), rcond=None)[0][1]) * 1e6


def _mlperf() -> Iterator[str]:
    yield (
        "| system | batch | plan, ratio | replicated, shards | published, ms | ours, ms | "
        "rest, ms | lookup, update | exchange, gradients | source |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for row, found in zip(published()["mlperf"], _priced("mlperf"), strict=True):
        sharding, gpus = sharding_of(row)
        phases = found.phases
        yield (
            f"| {row['system']} | {row['batch']:,} | {row['plan']}, {row['ratio']} | "
            f"{len(sharding.replicated)}, {sharding.shards(gpus)} | {row['ms']:.3f} | "
            f"{found.step:.3f} | {row['ms'] - found.step:.2f} | "
            f"{phases['lookup'] + phases['update']:.3f} | "
            f"{phases['exchange'] + phases['gradients']:.3f} | {row['source']} |"
        )


def _ranking() -> Iterator[str]:
    rows, found = published()["mlperf"], _priced("mlperf")
    yield "| question | published, ms | ours, ms | verdict |"
    yield "|---|---|---|---|"
    for question, members in _QUESTIONS.items():
        theirs = [rows[i]["ms"] for i in members]
        ours = [found[i].step for i in members]
        said = " → ".join(f"{ms:.3f}" for ms in theirs)
        mine = " → ".join(f"{ms:.3f}" for ms in ours)
        yield f"| {question} | {said} | {mine} | {verdict(theirs, ours)} |"
    same = [(a, b) for a, b in itertools.combinations(range(len(rows)), 2)
            if rows[a]["batch"] == rows[b]["batch"]]  # fmt: skip
    signs = [
        (_sign(theirs, theirs), _sign((found[a].step, found[b].step), theirs))
        for a, b in same
        for theirs in [(rows[a]["ms"], rows[b]["ms"])]
    ]
    wrong, clear = (sum(s * t < 0 for s, t in signs), sum(s != 0 for s, _ in signs))
    yield ""
    yield (
        f"Of all {len(same)} pairs of these runs with one batch, {clear} differ by more than "
        f"{TIE:.0%} as published; in the wrong order: {wrong}."
    )


def _overlap() -> Iterator[str]:
    """Differences of two steps, with barriers and with every exchange hidden."""
    yield (
        "| first and second step | published, ms | barriers | of published | exchanges hidden | "
        "of published |"
    )
    yield "|---|---|---|---|---|---|"
    pairs = {
        "round_robin and auto, 8 × B200, 55,296": ("ab", 0, 1),
        "the same, 221,184": ("ab", 2, 3),
        "one and two nodes of B200": ("mlperf", 3, 4),
        "8 and 16 nodes of H100": ("mlperf", 7, 8),
        "H100 and H200, eight GPUs": ("mlperf", 0, 1),
        "H200 and B200, eight GPUs": ("mlperf", 1, 3),
    }
    for words, (kind, first, second) in pairs.items():
        rows, found = published()[kind], _priced(kind)
        theirs = rows[first]["ms"] - rows[second]["ms"]
        cells = []
        for ours in (
            found[first].step - found[second].step,
            found[first].busiest - found[second].busiest,
        ):
            tie = abs(theirs) <= TIE * rows[first]["ms"]
            cells.append(f"{ours:+.2f} | {'tie' if tie else f'{ours / theirs:.0%}'}")
        yield f"| {words} | {theirs:+.2f} | {' | '.join(cells)} |"


_QUESTIONS = {
    "16 or 21 shards, 8 × B200": (2, 3),
    "H100, H200, B200, GB200: eight GPUs": (0, 1, 3, 5),
    "one or two nodes of B200": (3, 4),
    "8 or 16 nodes of H100": (7, 8),
    "2 nodes of H200 at 65,536, 4 at 131,200": (9, 10),
}
"""Rows of ``mlperf`` that are compared, by their places."""


def _sign(pair: tuple[float, float], published: tuple[float, float]) -> int:
    """1 if the first is above the second, -1 below, 0 within :data:`TIE` of the published."""
    if abs(pair[0] - pair[1]) <= TIE * max(published):
        return 0
    return 1 if pair[0] > pair[1] else -1


def verdict(theirs: Sequence[float], ours: Sequence[float]) -> str:
    """Whether neighbours are ordered as published; ties either way are told apart from misses."""
    words = {
        (0, 0): "equal in both", (1, 1): "right", (-1, -1): "right",
        (1, -1): "wrong order", (-1, 1): "wrong order",
    }  # fmt: skip
    found = []
    for index in range(len(theirs) - 1):
        pair = theirs[index], theirs[index + 1]
        signs = _sign(pair, pair), _sign((ours[index], ours[index + 1]), pair)
        other = "equal as published, not ours" if signs[0] == 0 else "equal in ours, not published"
        found.append(words.get(signs, other))
    return "; ".join(found)


def main() -> int:
    """Write the page, or check it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only tell whether it is current")
    check, stale = parser.parse_args().check, False
    for path, text in model_files(published()["ab"][:2]).items():
        stale |= not path.exists() or path.read_text(encoding="utf-8") != text
        if not check:
            path.write_text(text, encoding="utf-8")
    if not check:
        draw(published()["ab"], _beside(), PAGE.parents[1] / "figures" / "publications.svg")
    return update(PAGE, blocks(), check=check) or int(check and stale)


if __name__ == "__main__":
    sys.exit(main())
