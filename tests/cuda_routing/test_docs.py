"""The routing pages: snippets run, and the table shows what the code computes."""

import re
from pathlib import Path

import numpy as np
import pytest

from cuda_routing.report import route_report

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "routing").glob("*.md"))
SNIPPET = re.compile(r"```python\n(.*?)```", re.DOTALL)
SNIPPETS = [s for page in PAGES for s in SNIPPET.findall(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_snippets_run(snippet: str) -> None:
    """Code that a reader would copy works."""
    for package in ("torch", "torchrec"):
        if f"import {package}\n" in snippet or f"from {package}." in snippet:
            pytest.importorskip(package)
    exec(compile(snippet, "a routing page", "exec"), {})


def test_hot_key_table_is_what_the_command_prints() -> None:
    """The report gives the four rows of the hot-key table."""
    text = (ROOT / "docs" / "routing" / "which-rule.md").read_text(encoding="utf-8")
    info = route_report(["zipf:1.8:49332"], 8)
    for rule, found in info.balances.items():
        after = info.after_dedup[rule].max_over_mean
        row = rf"\| {rule.dist_type}[^|]*\| {found.max_over_mean:.2f} \| {after:.2f} \|"
        assert re.search(row, text), row
    assert np.isclose(info.sent_share, 0.01, atol=0.005)
