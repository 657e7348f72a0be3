"""docs/cli.md is generated from the commands' declarations, which --help also prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.generate import cli as reference
from milp_planner.cli.main import COMMANDS, run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"


def test_the_page_is_up_to_date() -> None:
    """`make docs` was run after the last change of a command."""
    assert PAGE.read_text(encoding="utf-8") == reference.reference(), "run: make docs"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c.name)
def test_everything_documented_is_in_help(
    command: object, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every option of the page stands in --help, and every option there on the page."""
    monkeypatch.setenv("COLUMNS", "200")
    assert run([command.name, "--help"]) == 0  # type: ignore[attr-defined]
    shown = capsys.readouterr().out
    words = {w.strip("│,* ") for w in shown.split() if w.startswith("--")} - {"--help"}
    declared = reference.parameters(command.load())  # type: ignore[attr-defined]
    names = {
        part.strip("`") for p in declared for part in p.names.replace(",", " ").split()
        if part.startswith("`--")
    }  # fmt: skip
    in_text = {word for word in words if word.rstrip(".:;)") in names or word in names}
    assert names <= words
    assert words - in_text <= {w for p in declared for w in p.help.split()} | set(shown.split())
    assert all(p.help for p in declared)


def test_check_tells_an_outdated_page(tmp_path: Path) -> None:
    """The same check as a command: 0 when equal, 1 when not."""
    page = tmp_path / "cli.md"
    assert reference.main([str(page)]) == 0
    assert reference.main(["--check", str(page)]) == 0
    page.write_text(page.read_text() + "more")
    assert reference.main(["--check", str(page)]) == 1
