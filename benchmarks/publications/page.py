"""docs/trust/publications.md: prices against published steps.

``python benchmarks/publications/page.py`` prices every plan of ``published.yaml`` and writes the
page's tables; with ``--check``, the exit code tells whether they are current.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import update
from benchmarks.publications.pricing import (
    MODEL,
    PHASES,
    Priced,
    cluster,
    pinned,
    priced,
    sharding_of,
)
from scenarios import catalog

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "trust" / "publications.md"
TIE = 0.01
"""Steps are called equal within this."""
Row = Mapping[str, Any]


@cache
def published() -> dict[str, Any]:
    """The published steps."""
    text = (HERE / "published.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def blocks() -> dict[str, str]:
    """Every table of the page, by its mark."""
    parts = {
        "ab": _ab(), "plans": _plans(), "terms": _terms(), "split": _split(),
        "breakdown": _breakdown(),
        "slopes": _slopes(), "mlperf": _mlperf(), "ranking": _ranking(),
    }  # fmt: skip
    return {name: "\n".join(lines) for name, lines in parts.items()}


@cache
def _priced(kind: str, copied: bool) -> list[Priced]:
    copies = published()["copies"] if copied else None
    return [priced(row, copies) for row in published()[kind]]


def models() -> dict[Path, str]:
    """The two plans of the A/B as model files."""
    found = {}
    for row in published()["ab"][:2]:
        sharding, gpus = sharding_of(row)
        model = pinned(sharding, cluster(row["system"]), row["batch"], gpus).to_dict()
        text = yaml.safe_dump(
            {
                "name": f"{MODEL}-{row['plan']}",
                "description": f"{MODEL} on {row['system']}, each part pinned as in {row['plan']}.",
                "source": f"{row['source']}; plan recomputed by benchmarks/publications/planner.py",
                "workload": {
                    name: model["workload"][name]
                    for name in ("batch_per_rank", "mode", "exchange_dtype", "codec")
                },
                "defaults": {
                    name: model["tables"][0][name]
                    for name in ("kind", "dim", "dtype", "output", "optimizer")
                },
                "tables": [
                    {name: table[name] for name in ("name", "rows", "pooling_factor")}
                    | {"constraints": {"pin": _said(table["constraints"]["pin"])}}
                    for table in model["tables"]
                ],
            },
            sort_keys=False, default_flow_style=None, width=100,
        )  # fmt: skip
        found[HERE / "models" / f"{row['plan']}.yaml"] = f"# Written by page.py\n{text}"
    return found


def _said(pin: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a pin that say something."""
    return {name: value for name, value in pin.items() if value is not None}


def _ab() -> Iterator[str]:
    yield (
        "| batch | published, ms | difference | ours, data sheet | difference | of published | "
        "ours, HBM as copied | difference | of published |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    rows = published()["ab"]
    for first in range(0, len(rows), 2):
        slow, fast = rows[first : first + 2]
        gap = slow["ms"] - fast["ms"]
        cells = [f"{slow['batch']:,}", f"{slow['ms']:.2f}, {fast['ms']:.2f}", f"**{gap:.2f}**"]
        for copied in (False, True):
            ours = [each.step for each in _priced("ab", copied)[first : first + 2]]
            mine = ours[0] - ours[1]
            times = ", ".join(f"{step:.2f}" for step in ours)
            cells += [times, f"**{mine:.2f}**", f"{mine / gap:.0%}"]
        yield f"| {' | '.join(cells)} |"


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
    for row, found in zip(published()["ab"], _priced("ab", False), strict=True):
        cells = " | ".join(f"{found.phases[name]:.3f}" for name in PHASES)
        yield f"| {row['batch']:,} | {row['plan']} | {cells} | {found.step:.3f} |"


def _split() -> Iterator[str]:
    """The difference of the two plans, term by term."""
    rows, sheet, copied = published()["ab"], _priced("ab", False), _priced("ab", True)
    heads = [f"{row['batch']:,}" for row in rows[::2]]
    terms: dict[str, list[float]] = {}
    for first in range(0, len(rows), 2):
        gap = rows[first]["ms"] - rows[first + 1]["ms"]
        slow, fast = sheet[first], sheet[first + 1]
        parts = {name: slow.phases[name] - fast.phases[name] for name in PHASES}
        slower = copied[first].step - copied[first + 1].step - sum(parts.values())
        work = parts["lookup"] + parts["update"]
        found = {
            "lookup and update of the busiest GPU, at the data sheet's HBM": work,
            "exchanges": parts["exchange"] + parts["gradients"],
            "HBM as fast as it copies": slower,
            "not explained": gap - work - parts["exchange"] - parts["gradients"] - slower,
            "**published difference**": gap,
        }
        for name, ms in found.items():
            terms.setdefault(name, []).append(ms)
    yield f"| ms at batch | {' | '.join(heads)} |"
    yield f"|---|{'---|' * len(heads)}"
    for name, each in terms.items():
        yield f"| {name} | {' | '.join(f'{ms:+.2f}' for ms in each)} |"


def _breakdown() -> Iterator[str]:
    found = _priced("ab", False)[1]
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


def _slopes() -> Iterator[str]:
    yield "| system, plan | batches | published, ns a sample | ours, ns a sample | of published |"
    yield "|---|---|---|---|---|"
    rows, found = published()["slopes"], _priced("slopes", False)
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
    for row, found in zip(published()["mlperf"], _priced("mlperf", False), strict=True):
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
    rows, found = published()["mlperf"], _priced("mlperf", False)
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
    wrong = sum(
        _sign(rows[a]["ms"], rows[b]["ms"]) * _sign(found[a].step, found[b].step) < 0
        for a, b in same
    )
    yield ""
    yield f"Of all {len(same)} pairs of these runs with one batch, {wrong} are in the wrong order."


_QUESTIONS = {
    "16 or 21 shards, 8 × B200": (2, 3),
    "H100, H200, B200, GB200: eight GPUs": (0, 1, 3, 5),
    "one or two nodes of B200": (3, 4),
    "8 or 16 nodes of H100": (7, 8),
    "2 nodes of H200 at 65,536, 4 at 131,200": (9, 10),
}
"""Rows of ``mlperf`` that are compared, by their places."""


def _sign(a: float, b: float) -> int:
    """1 if a is above b, -1 below, 0 within :data:`TIE`."""
    if abs(a - b) <= TIE * max(a, b):
        return 0
    return 1 if a > b else -1


def verdict(theirs: Sequence[float], ours: Sequence[float]) -> str:
    """Whether neighbours are ordered as published; ties either way are told apart from misses."""
    words = {
        (0, 0): "equal in both", (1, 1): "right", (-1, -1): "right",
        (1, -1): "wrong order", (-1, 1): "wrong order",
    }  # fmt: skip
    found = []
    for index in range(len(theirs) - 1):
        signs = (
            _sign(theirs[index], theirs[index + 1]), _sign(ours[index], ours[index + 1])
        )  # fmt: skip
        other = "equal as published, not ours" if signs[0] == 0 else "equal in ours, not published"
        found.append(words.get(signs, other))
    return "; ".join(found)


def main() -> int:
    """Write the page, or check it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only tell whether it is current")
    check, stale = parser.parse_args().check, False
    for path, text in models().items():
        stale |= not path.exists() or path.read_text(encoding="utf-8") != text
        if not check:
            path.write_text(text, encoding="utf-8")
    return update(PAGE, blocks(), check=check) or int(check and stale)


if __name__ == "__main__":
    sys.exit(main())
