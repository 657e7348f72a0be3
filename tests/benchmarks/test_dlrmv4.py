"""docs/dlrmv4.md and its figure show what the study computes today."""

from pathlib import Path

import pytest

from benchmarks.dlrmv4 import page


def _check(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.argv", ["page.py", "--check"])
    return page.main()


def test_page_and_figure_are_current(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command that writes the page's numbers and the figure would change nothing."""
    assert _check(monkeypatch) == 0


def test_what_is_out_of_date_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The check notices a number typed into a block, an outdated figure, and a missing one."""
    text = page.PAGE.read_text(encoding="utf-8")
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    page.PAGE.write_text(text.replace("265.8 GiB", "266 GiB"), encoding="utf-8")
    assert _check(monkeypatch) == 1
    page.PAGE.write_text(text, encoding="utf-8")
    assert _check(monkeypatch) == 0
    drawn = page.FIGURE.read_text(encoding="utf-8")
    monkeypatch.setattr(page, "FIGURE", tmp_path / "figure.svg")
    assert _check(monkeypatch) == 1
    page.FIGURE.write_text(drawn.replace("[32, [[", "[8, [[", 1), encoding="utf-8")
    assert _check(monkeypatch) == 1


def test_bars_are_the_needs_of_the_page() -> None:
    """The parts of each bar sum to the need in the table, up to rounding."""
    needs = page.blocks()["needs"]
    for label, parts in page.bars():
        name, codec = label.split("\n")
        [row] = [line for line in needs.splitlines() if line.startswith(f"| {name}")]
        cell = row.split(" | ")[1 if codec.startswith("stock") else 2]
        assert sum(parts) == pytest.approx(float(cell.split(" GiB")[0]), abs=0.4)
