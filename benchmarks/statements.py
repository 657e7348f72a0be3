"""Do pages contradict each other? ``python benchmarks/statements.py`` lists what they state.

A page that shows a plan of a shipped model on a shipped cluster, with its gap, states an interval:
the best step time is not below the bound and not above the plan. One that shows that nothing fits
puts both at infinity. Plans of different searches
differ, and so do gaps; but intervals of the same model and cluster that do not meet cannot both
hold. Then prices have changed between the measurements, and the older page has to say *at the
prices of* its commit, as benchmarks/figures.json knows it, until it is measured again.

The exit code is 1 if two pages contradict each other and neither says so.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import inf
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MS = {"ps": 1e-9, "ns": 1e-6, "µs": 1e-3, "ms": 1.0, "s": 1e3}
"""Milliseconds of a unit."""
ROUNDED = 0.002
"""Share by which a printed time or gap may be off."""
Texts = Mapping[str, str]
Row = dict[str, str]


@dataclass(frozen=True)
class Statement:
    """What a page says about the best step time of a shipped model on a shipped cluster."""

    page: str
    measured: str
    """The entry of figures.json with its date and commit; mostly the page."""
    model: str
    cluster: str
    least: float
    """Milliseconds that no plan is below; 0 where no gap is given, infinite where there is none."""
    found: float
    """Milliseconds of a plan, or infinite."""

    def __str__(self) -> str:
        where = f"{self.model}@{self.cluster}"
        return f"{where}: {self.least:.6g} to {self.found:.6g} ms ({self.page})"

    def contradicts(self, other: Statement) -> bool:
        """Whether it puts every plan above the other's plan, or the other way round."""
        return (self.model, self.cluster) == (other.model, other.cluster) and (
            self.least > other.found * (1 + ROUNDED) or other.least > self.found * (1 + ROUNDED)
        )


def statements(texts: Texts) -> list[Statement]:
    """All statements of the pages, given as text by path from the root of the checkout."""
    return [
        Statement(page, measured or page, model, cluster, found * (1 - gap) * (1 - ROUNDED), found)
        for page, text in texts.items()
        for measured, model, cluster, found, gap in (*READERS.get(page, _none)(text), *boxes(text))
    ]


def contradictions(texts: Texts, known: Mapping[str, Mapping[str, str]]) -> list[str]:
    """A sentence for every two statements that cannot both hold, where no page says why.

    Parameters
    ----------
    texts : mapping of str to str
        Pages by path.
    known : mapping of str to mapping
        ``date`` and ``commit`` of the entries of figures.json.
    """
    wrong = []
    for a, b in combinations(dict.fromkeys(statements(texts)), 2):
        if a.contradicts(b):
            dates = [known.get(s.measured, {}).get("date", "9") for s in (a, b)]
            # of two pages of one day, either may be the older one
            old = [s for s, date in zip((a, b), dates, strict=True) if date == min(dates)]
            said = [f"prices of {known.get(s.measured, {}).get('commit', '?')}" for s in old]
            shown = [texts[s.page].replace("`", "") for s in old]
            if not any(words in page for words, page in zip(said, shown, strict=True)):
                wrong.append(f"{a}, but {b}; {old[0].page} does not say: at the {said[0]}")
    return wrong


def stale(texts: Texts, known: Mapping[str, Mapping[str, str]]) -> list[str]:
    """A sentence for every page that names the prices of a commit other than it was measured at."""
    return [
        f"{page} names the prices of {commit}, at which it was not measured"
        for page, text in texts.items()
        for commit in re.findall(r"prices of `?([0-9a-f]{7,40})\b", text)
        if commit
        not in {
            entry["commit"]
            for key, entry in known.items()
            if key.partition("#")[0] in (page, *SHARED.get(page, ()))
        }
    ]


Found = tuple[str, str, str, float, float]
"""Entry of figures.json (empty: the page's), model, cluster, milliseconds, gap."""
Reader = Callable[[str], Iterator[Found]]
SHARED = {"docs/results.md": ("README.md",)}
"""Entries of figures.json besides its own that a page shows blocks of."""


def rows(text: str, *columns: str) -> Iterator[Row]:
    """Rows of the tables that have these columns, by column, without code marks; of columns of one
    name the first."""
    head: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            head = []
        elif not head:
            head = [cell.replace("`", "") for cell in cells]
        elif set(columns) <= set(head) and len(cells) == len(head) and "---" not in cells[0]:
            pairs = list(zip(head, cells, strict=True))
            yield {name: cell.replace("`", "") for name, cell in reversed(pairs)}


def time_of(cell: str, unit: str = "") -> float | None:
    """Milliseconds of a cell such as ``36.84 ms``, or of a number in a unit; None for words,
    infinite if they say that no plan exists."""
    if "infeasible" in cell:
        return inf
    found = re.match(r"\**(\d[\d.,]*)[†*]*(?: ([pnµm]?s))?", cell)
    if not found or not (unit or found[2]):
        return None
    return float(found[1].replace(",", "")) * MS[found[2] or unit]


def gap_of(cell: str) -> float:
    """The share in brackets, or of the cell; 0 where there is none (an optimum, or ``0``)."""
    share = re.search(r"\((?:gap )?([\d.e-]+)%\)", cell) or re.match(r"([\d.e-]+)%", cell)
    return float(share[1]) / 100 if share else 0.0


def crossed(clusters: Mapping[str, str]) -> Reader:
    """Tables of suites: a line a model, a column a cluster, ``ms (certified gap)`` in between."""

    def read(text: str) -> Iterator[Found]:
        for row in rows(text, "model", *clusters):
            for name, cluster in clusters.items():
                if found := time_of(row[name], "ms"):
                    yield "", row["model"], cluster, found, gap_of(row[name])

    return read


def sensitivity(text: str) -> Iterator[Found]:
    """Plans named model@cluster."""
    for row in rows(text, "plan", "step time", "gap"):
        model, _, cluster = row["plan"].partition("@")
        part = "docs/trust/time.md#sensitivity"
        yield part, model, cluster, time_of(row["step time"]) or 0, gap_of(row["gap"])


def demo(text: str) -> Iterator[Found]:
    """The demo's clusters; the model is named below its table."""
    model = re.search(r"`([\w-]+)`, measured", text)
    for row in rows(text, "cluster", "planner", "step time", "best bound"):
        found, bound = time_of(row["step time"]), time_of(row["best bound"])
        if model and found and bound:
            yield "README.md", model[1], row["cluster"], found, 1 - bound / found


def replayed(text: str) -> Iterator[Found]:
    """The best plan for any trainer; its bound is that of the plan for one of them."""
    for row in rows(text, "cluster", "--for", "any trainer"):
        model = row.get("model") or ("dlrmv4-yambda5b" if row["workload"] == "as shipped" else "")
        best, one = time_of(row["any trainer"]), time_of(row["--for"])
        if model and best:
            least = min(best, one * (1 - gap_of(row["--for"]))) if one else 0.0
            yield "", model, row["cluster"], best, 1 - least / best


def distemb(text: str) -> Iterator[Found]:
    """Numbers of GPUs at which a shipped model has the published batch."""
    clusters = {"large 32": "4x8xa100", "jumbo 128": "16x8xa100"}
    clusters |= {f"{size} 8": "8xa100" for size in ("tiny", "small", "medium")}
    for row in rows(text, "model", "GPUs", "auto", "certified gap"):
        cluster, found = clusters.get(f"{row['model']} {row['GPUs']}"), time_of(row["auto"], "ms")
        if cluster and found:
            part, gap = "docs/results.md#distemb", gap_of(row["certified gap"])
            yield part, f"distemb-{row['model']}", cluster, found, gap


def exact(text: str) -> Iterator[Found]:
    """Plans named model × cluster; where an objective is named, too, they are not step times."""
    for row in rows(text, "model × cluster", "plan, ms", "certified gap"):
        model, _, cluster = row["model × cluster"].strip(" *").partition(" × ")
        found = time_of(row["plan, ms"], "ms")
        if found and " × " not in cluster:
            yield "docs/results.md#catalogue", model, cluster, found, gap_of(row["certified gap"])


PLANS = {"TorchRec ms": "", "CP-SAT ms": "", "ours ms: best": "gap: best"}
"""Columns of plans of an instance, each with the column of its gap if it has one."""


def instances(text: str) -> Iterator[Found]:
    """Instances in TorchRec's estimates: everybody's plans, and our bounds below them."""
    for row in rows(text, "instance"):
        for column in (name for name in row if name in PLANS):
            if found := time_of(row[column], "ms"):
                gap = gap_of(row[PLANS[column]]) if PLANS[column] else 1.0
                part = "docs/results.md#torchrec"
                yield part, row["instance"], "as TorchRec estimates", found, gap


def boxes(text: str) -> Iterator[Found]:
    """Verdicts in the output of ``plan``: model@cluster, a time, and the bound if that differs."""
    for model, cluster, box in re.findall(r"╭─ ([\w-]+)@([\w-]+) ─(.*?)╰", text, re.DOTALL):
        found = re.search(r"step_time ([\d.]+ \S+)", box)
        bound = re.search(r"bound ([\d.]+ \S+)", box)
        if "CERTIFIED INFEASIBLE" in box:
            yield "", model, cluster, inf, 0.0
        if found and (best := time_of(found[1])):
            least = time_of(bound[1]) if bound else best
            yield "", model, cluster, best, 1 - (least or 0) / best


def examples(text: str) -> Iterator[Found]:
    """The example of docs/explain.md: the plan's own capacity in the frontier."""
    own = r"^ *[\d.]+ GiB\* .*?([\d.]+ [µm]?s) +[\d.]+ [µm]?s +(\S+)"
    for time, gap in re.findall(own, text, re.MULTILINE):
        yield "", "kuairand-27k", "1xa10", time_of(time) or 0, gap_of(gap)


def _none(text: str) -> Iterator[Found]:
    yield from ()


def results(text: str) -> Iterator[Found]:
    """Every section of docs/results.md."""
    for read in (exact, instances, distemb, demo):
        yield from read(text)


SINGLE = ("1xa10", "8xh100", "8xh200", "8xb200", "8xmi350x")
READERS: dict[str, Reader] = {
    "docs/suites.md": crossed({name: name for name in SINGLE}),
    "docs/trust/time.md": sensitivity,
    "docs/from-plan-to-run.md": replayed,
    "docs/explain.md": examples,
    "docs/results.md": results,
}


def pages() -> dict[str, str]:
    """README and all of docs."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in found}


def main() -> int:
    """List the statements, then what is wrong."""
    texts = pages()
    known = json.loads((ROOT / "benchmarks" / "figures.json").read_text("utf-8"))
    for s in sorted(statements(texts), key=lambda s: (s.model, s.cluster, s.page)):
        print(s)
    wrong = [*contradictions(texts, known), *stale(texts, known)]
    print(*wrong, sep="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
