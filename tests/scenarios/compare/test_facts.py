"""A comparison's figures, its file and its page."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from formulations.settings import TracePoint
from milp_planner.errors import BadInput
from scenarios.compare.facts import (
    BoundInfo,
    Comparison,
    ComparisonRow,
    read_comparison,
)
from scenarios.compare.page import render_comparison
from tests.milp_planner.features.plan.test_ranks import drawn

MS = 10**9


def _row(label: str, status: str, value: int | None, **more: object) -> ComparisonRow:
    objectives = {} if value is None else {"total": value}
    feasible = None if value is None else status != "breaks"
    values: dict[str, object] = {
        "gap": None if not feasible or value is None else (value - 10 * MS) / value,
        "bound": None, "seconds": 1.0, "note": "", **more,
    }  # fmt: skip
    return ComparisonRow(label, "total", status, feasible, objectives, **values)  # type: ignore[arg-type]


def info() -> Comparison:
    """An exact row, two of the DP, a plan that violates a constraint, and a row without a plan."""
    trace = (
        TracePoint(0.1, 30 * MS, None, "cpsat"),
        TracePoint(0.2, None, 5 * MS, "cpsat"),
        TracePoint(0.3, 40 * MS, 4 * MS, "other"),
        TracePoint(1.0, 10 * MS, 10 * MS, "end"),
    )
    rows = (
        _row("cpsat", "optimal", 10 * MS, bound=10 * MS, trace=trace),
        _row("dp, 10 bins", "feasible", 16 * MS),
        _row("dp, as planned, 100 bins", "breaks", 9 * MS, note="mixes <ratios>"),
        _row("dp, as run, 100 bins", "feasible", 12 * MS),
        _row("mip", "feasible", 10 * MS),
        _row("uniform", "unknown", None, note="nothing fits"),
    )
    bounds = {"total": BoundInfo(10 * MS, "cpsat", exact=True)}
    return Comparison("model", "cluster", rows, bounds, {"total": "f" * 64}, "ps")


def test_small_differences_are_not_ranked() -> None:
    """12 and 16 of 10 ms differ by 20% and 60%: with an error of 30% the first two are not ranked,
    with one of 10% all are; where none is stated, that is said. Terminal and page show it."""
    known = replace(info(), profile="mine", error=0.3)
    said = known.told_apart("total")
    assert said == (
        "Not ranked: cpsat, dp, as run, 100 bins, mip differ by less than 30%, the error that "
        "profile mine states of its prices."
    )
    assert said in " ".join(drawn(known.drawing()).split()) and said in render_comparison(known)
    assert replace(known, error=0.1).told_apart("total") is None
    none = replace(known, error=None).told_apart("total")
    assert none == "Profile mine states no error of its prices."
    assert info().told_apart("total") is None  # of an old file
    alike = tuple(row for row in known.rows if row.objectives.get("total") == 10 * MS)
    assert replace(known, rows=alike).told_apart("total") is None


def test_verdicts() -> None:
    """Each formulation's sentence follows from status, gap and the best plan of the section."""
    found = info()
    assert [found.verdict(row) for row in found.rows] == [
        "nothing certified; proved by itself: no plan is better",
        "60% above the best found, nothing certified, gap 38%",
        "its plan does not fit: mixes <ratios>",
        "20% above the best found, nothing certified, gap 17%",
        "nothing certified; proved by another's bound: no plan is better",
        "found no plan: nothing fits",
    ]


@pytest.mark.parametrize(
    ("certified", "told"),
    [
        (10 * MS, ["certified: no plan is better", "60% above the best found, certified gap 38%"]),
        (9 * MS, ["certified gap 10%; proved by itself: no plan is better",
                  "60% above the best found, certified gap 44%, gap 38%"]),
    ],
)  # fmt: skip
def test_what_is_certified_comes_first(certified: int, told: list[str]) -> None:
    """In every verdict, and in the box at the top of the page."""
    found = replace(info(), bounds={"total": BoundInfo(10 * MS, "cpsat", True, certified)})
    assert [found.verdict(row) for row in found.rows[:2]] == told
    assert f"{told[0]}; cpsat" in render_comparison(found)


def test_the_status_says_on_whose_word() -> None:
    """It stands beside the certified gap; a found plan needs no word, old files have none."""
    proved = "optimal by cpsat, certified to 0.50%"
    assert _row("cpsat", "optimal", 10 * MS, standing=proved).word == "optimal by cpsat"
    assert (
        _row("dp", "feasible", 10 * MS, standing="feasible, certified to 1.00%").word == "feasible"
    )
    assert _row("dp", "breaks", 9 * MS, standing="certified optimal").word == "breaks"
    assert "optimal by cpsat" in drawn(replace(info(), rows=(
        _row("cpsat", "optimal", 10 * MS, standing=proved),
    )).drawing())  # fmt: skip
    assert _row("cpsat", "optimal", 10 * MS).word == "optimal"


@pytest.mark.parametrize(
    ("best", "said"),
    [
        (BoundInfo(10 * MS, "highs", False, 9 * MS),
         "Certified: no plan is below 9 ms. Gaps are to 10 ms, proved by highs in floating point."),
        (BoundInfo(10 * MS, "lagrangian", True, 10 * MS), "Certified: no plan is below 10 ms."),
        (BoundInfo(10 * MS, "cpsat", True),
         "Nothing is certified. Gaps are to 10 ms, proved by cpsat in integers."),
        (BoundInfo(10 * MS, "cpsat"), "Gaps are to 10 ms, proved by cpsat."),
        (None, "No bound is proved"),
    ],
)  # fmt: skip
def test_the_bound_names_its_origin(best: BoundInfo | None, said: str) -> None:
    """Page and terminal give its method, its arithmetic, and how much of it a certificate
    re-derives."""
    found = replace(info(), bounds={"total": best})
    assert said in found.origin("total")
    assert said in render_comparison(found)
    assert said in " ".join(drawn(found.drawing()).split())


def test_what_is_known_only_improves() -> None:
    """Several threads' trace may go back and forth; the best known values do not."""
    row = info().rows[0]
    assert row.known("objective") == ((0.1, 30 * MS), (1.0, 10 * MS))
    assert row.known("bound") == ((0.2, 5 * MS), (1.0, 10 * MS))


def test_the_file_reads_back_as_equal(tmp_path: Path) -> None:
    """report reads what compare writes; any other file is refused in a sentence."""
    path = tmp_path / "compare.json"
    document = info().to_dict()
    path.write_text(json.dumps(document))
    assert read_comparison(path) == info()
    for change in ({"rows": 3}, {"rows": [{"label": "x"}]}, {"time_unit": None}, {"format": "x"}):
        path.write_text(json.dumps({**document, **change}))
        with pytest.raises(BadInput, match=r"compare\.json"):
            read_comparison(path)


def test_the_page_shows_it() -> None:
    """Gaps, verdicts and curves; text is never markup."""
    text = render_comparison(info())
    verdict = "nothing certified; proved by itself: no plan is better."
    assert f"{verdict}</li>" in text and ">verdict<" not in text  # no column that a window cuts
    assert "&lt;ratios&gt;" in text and "<ratios>" not in text
    assert "Best plan (bold) and bound (thin) over time" in text
    assert text.count("<svg") == 1
    assert len(text.encode()) < 100_000


def test_without_any_plan_the_page_says_so() -> None:
    """The page shows a proof that nothing fits, with whose word it is, or that nothing is known."""
    bounds: dict[str, BoundInfo | None] = {"total": BoundInfo(10 * MS, "certificate", True, 9)}
    for told in ("certified infeasible", "infeasible by cpsat"):
        none = (_row("cpsat", "infeasible", None, standing=told),)
        page = render_comparison(Comparison("m", "c", none, bounds, {"total": "f" * 64}, "ps"))
        assert page.count(told) == 3 and "Gaps are to" not in page  # box, status and verdict
    open_ = Comparison("m", "c", (info().rows[-1],), bounds, {"total": "f" * 64}, "ps")
    assert "nothing is proved" in render_comparison(open_)


def test_long_words_go_on_below() -> None:
    """Within 100 columns nothing is cut: neither figures nor the words before them."""
    words = {"standing": "optimal by cpsat, certified to 0.01%", "seconds": 0.999}
    row = _row("dp, fusion-aware", "optimal", 19_710_345_678_901, gap=7.6e-6, **words)
    bound = BoundInfo(19_710_000_000_000, "cpsat", True, 19_710_000_000_000)
    text = drawn(replace(info(), rows=(row,), bounds={"total": bound}).drawing())
    assert "…" not in text and max(map(len, text.splitlines())) <= 100
    assert {"fusion-aware", "cpsat", "0.999"} <= set(text.split())
