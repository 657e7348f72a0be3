"""Where a shard may lie is written in one package, and twice more to check it."""

from __future__ import annotations

import re
from pathlib import Path

import formulations

HOME = Path(formulations.__file__).parent
#: Who names kinds of place outside ``instance/``: the independent copies, and those that make
#: instances or compare two.
OTHERS = {
    "checker.py", "mip_model.py", "priced.py", "fusion.py", "staying.py", "diagnose/questions.py",
}  # fmt: skip
#: ``Where.LIST``, ``block_where``, or a kind as an instance's file has it.
NAMED = re.compile(r"\bWhere\.[A-Z]|\bblock_where\b|['\"](any_rank|one_machine)['\"]")


def test_others_ask_the_instance() -> None:
    """Nobody else tells kinds of place apart; each of those allowed still does."""
    named = {
        str(file.relative_to(HOME))
        for file in HOME.rglob("*.py")
        if NAMED.search(file.read_text(encoding="utf-8"))
    }
    assert {name for name in named if not name.startswith("instance/")} == OTHERS
