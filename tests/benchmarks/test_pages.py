"""Blocks of pages are replaced whole, and the text around them is not touched."""

import json
from pathlib import Path

import pytest

from benchmarks.pages import replaced, stored, update

PAGE = """# A page

<!-- one: a.py -->
old

lines
<!-- end -->

text
<!-- two -->
2
<!-- end -->
"""


def test_only_the_named_block_changes() -> None:
    """Surrounding text and other blocks stay, and so do the marks, so that a second run finds
    them."""
    new = replaced(PAGE, {"one: a.py": r"\1 new"})
    assert new == PAGE.replace("old\n\nlines", r"\1 new")
    assert replaced(new, {"one: a.py": "old\n\nlines"}) == PAGE


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("none", "0 times"),
        (PAGE + PAGE, "2 times"),
        ("<!-- one: a.py -->\nold\n", "has no <!-- end -->"),
        (PAGE.replace("<!-- end -->", "", 1), "has no <!-- end -->"),
    ],
)
def test_a_page_without_the_block_is_refused(page: str, said: str) -> None:
    """A missing, doubled or unclosed mark is reported, and the next block's text is not lost."""
    with pytest.raises(ValueError, match=said):
        replaced(page, {"one: a.py": "new"})


def test_check_writes_nothing(tmp_path: Path) -> None:
    """With ``check``, the exit code says whether the page is up to date; without it, the page is
    written."""
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert update(page, {"two": "3"}, check=True) == 1
    assert page.read_text() == PAGE
    assert update(page, {"two": "3"}) == 0
    assert update(page, {"two": "3"}, check=True) == 0


def test_the_newest_result_is_that_of_the_last_date(tmp_path: Path) -> None:
    """Given a folder, the file with the last name counts; given a file, that file."""
    for day in ("2026-01-09", "2025-12-31"):
        (tmp_path / f"{day}.json").write_text(json.dumps({"date": day}))
    assert stored(tmp_path)["date"] == "2026-01-09"
    assert stored(tmp_path / "2025-12-31.json")["date"] == "2025-12-31"
