"""A batch's figures as one value, and its tables on a terminal.

The page of a batch as text: self-contained, complete, small enough.
"""

import json

from scenarios.batch.info import AssertionInfo, BatchInfo, batch_of, draw_batch
from scenarios.batch.page import render_batch, shared_ending
from tests.milp_planner.features.plan.test_ranks import drawn
from tests.scenarios.batch.records import failed, many, proved, record

BROKEN = AssertionInfo("all fit", False, 7, tuple(f"m on c, seed {i}: no plan" for i in range(7)))


def info(**changes: object) -> BatchInfo:
    """Three results of four: a heuristic, a proof, an error."""
    records = [record(objective=12 * 10**9), proved(10 * 10**9), failed(formulation="greedy")]
    return batch_of("suite", "what for", 4, records, [BROKEN])


def test_the_summary_counts() -> None:
    """One row per formulation and objective."""
    found = info()
    assert found.counts == {"optimal": 1, "feasible": 1, "failed": 1}
    assert [(r.series, r.equal, r.worst, r.gap) for r in found.summary] == [
        ("dp", 0, 0.2, 2 / 12),
        ("cpsat", 1, 0.0, 0.0),
        ("greedy", 0, None, None),
    ]
    assert (found.versions, found.finished, found.scenarios) == (("1",), "2026-01-01", 4)


def test_it_is_json() -> None:
    """Strict JSON with every row."""
    text = json.dumps(batch_of("s", "", 50, many(50)).to_dict(), allow_nan=False)
    assert len(json.loads(text)["rows"]) == 50


def test_the_terminal_shows_what_stands_out() -> None:
    """Summary, the error, the first broken scenarios of an assertion, within 100 columns."""
    text = drawn(draw_batch(info()))
    assert "failed: m on c, total, greedy: BadInput" in text
    assert "does not hold: all fit (7 scenarios)" in text and "and 2 more" in text
    assert "not covered" not in text
    assert max(map(len, text.splitlines())) <= 100


def test_gaps_are_certified_by_whoever_can() -> None:
    """A heuristic's gap is measured to the exact row's certificate and comes before the other."""
    best = proved(10 * 10**9, certified_bound=9 * 10**9)
    found = batch_of("s", "", 2, [record(objective=12 * 10**9), best])
    assert [(r.certified_gap, r.gap) for r in found.summary] == [(3 / 12, 2 / 12), (1 / 10, 0.0)]
    head = drawn(draw_batch(found)).splitlines()[1].split("  ")
    assert head.index("certified gap") < [name.strip() for name in head].index("gap")


def test_every_part_is_there_and_names_are_escaped() -> None:
    """All sections, one row per scenario; text is never markup."""
    records = [*many(60), failed()]
    text = render_batch(batch_of("s", "what for", 70, records, [BROKEN]))
    for section in ("assertions", "summary", "sweeps", "profiles", "every"):
        assert f'<h2 id="{section}">' in text, section
    body = text[text.index('<table id="scenarios"') :]
    assert body[: body.index("</table>")].count("<tr>") == 1 + len(records)
    assert "&lt;b&gt;no&lt;/b&gt;" in text and "<b>no</b>" not in text
    assert "9 have no result yet" in text


def test_contradictions_come_first() -> None:
    """Results that contradict each other stand above everything else."""
    text = render_batch(batch_of("s", "", 2, [record(objective=9), proved(10)]))
    assert "contradiction" in text
    assert text.index("is above a plan") < text.index('<h2 id="summary">')


def test_an_empty_batch_has_a_page() -> None:
    """A batch in which nothing was run yet."""
    text = render_batch(batch_of("s", "", 3, []))
    assert "3 have no result yet" in text and "<circle" not in text


def test_a_thousand_rows_stay_under_a_megabyte() -> None:
    """Rows with bins, notes and long names."""
    text = render_batch(batch_of("s", "", 1000, many(1000)))
    assert len(text.encode()) < 1_000_000


def test_what_all_names_end_in_is_left_off() -> None:
    """Whole settings are left off; a single name, what stands before the first comma, stay."""
    assert shared_ending(["g:a=1,b=2,c=3", "g:a=2,b=2,c=3"]) == ",b=2,c=3"
    assert shared_ending(["g:a=1,b=2", "g:a=1,b=12"]) == ""
    assert shared_ending(["x,b", "b"]) == "" == shared_ending(["x,b", "x,b"])


def test_what_is_certified_comes_first() -> None:
    """In the strip and in every row, which also says on whose word a status is."""
    word = {"standing": "optimal by cpsat, certified to 10.00%", "certified_bound": 9 * 10**9}
    records = [proved(10 * 10**9, **word), record(objective=12 * 10**9), record(model="other")]
    text = render_batch(batch_of("s", "", 3, records))
    strip = text[: text.index('<h2 id="summary">')]
    assert strip.index(">certified gap<") < strip.index(">optimal<")
    assert "median of 2 plans; worst 25%; 1 without" in strip
    body = text[text.index('<table id="scenarios"') :]
    assert "optimal by cpsat" in body and "certified to" not in body
    assert body.index(">certified gap<") < body.index(">gap<") < body.index(">bound<")
    bare = render_batch(batch_of("s", "", 1, [proved(10**9)]))
    assert "nothing is certified" in bare
