"""docs/trust/time.md: prices against published steps.

``python benchmarks/publications/page.py`` prices every plan of ``published.yaml`` and writes the
page's tables and picture; with ``--check``, the exit code tells whether the tables are current.
"""

import argparse
import itertools
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import update
from benchmarks.publications.figure import draw
from benchmarks.publications.models import model_files
from benchmarks.publications.pricing import (
    WAYS,
    Priced,
    priced,
    published,
)

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "trust" / "time.md"
TIE = 0.02
"""Steps are equal within this share of the published ones, whose logs vary by 1 to 2%; so are ours,
as the part that we do not price is the same."""
OURS = "FBGEMM, ids as published"
"""Which of the ways all tables below the first use."""


def blocks() -> dict[str, str]:
    """Every table of the page, by its mark."""
    parts = {"ab": _ab(), "ranking": _ranking()}
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
