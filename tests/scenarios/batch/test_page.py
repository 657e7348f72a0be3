"""The page of a batch as text: self-contained, complete, small enough."""

from scenarios.batch.info import batch_of
from scenarios.batch.page import render_batch, shared_ending
from tests.scenarios.batch.records import failed, many, proved, record
from tests.scenarios.batch.test_info import BROKEN


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
    """Only whole settings are left off; a single name, and what stands before the first comma,
    stay."""
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
