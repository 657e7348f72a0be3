"""The pages of a batch and of a comparison in a real headless Chromium."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from scenarios.batch.info import batch_of
from scenarios.batch.page import render_batch
from scenarios.compare.page import render_comparison
from tests.milp_planner.features import browser
from tests.scenarios.batch.records import failed, many
from tests.scenarios.batch.test_info import BROKEN
from tests.scenarios.compare.test_facts import info

pytestmark = pytest.mark.skipif(
    not browser.available(), reason="no chromium and chromedriver on this machine"
)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both pages on disk; one scenario of the batch failed and so has no numbers."""
    folder = tmp_path_factory.mktemp("pages")
    batch = batch_of("suite", "what for", 70, [failed(formulation="greedy"), *many(60)], [BROKEN])
    texts = {"batch": render_batch(batch), "compare": render_comparison(info())}
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, "utf-8")
    return {name: folder / f"{name}.html" for name in texts}


@pytest.fixture(scope="module")
def session() -> Iterator[browser.Browser]:
    """One browser for all tests."""
    with browser.browser() as found:
        yield found


@pytest.mark.parametrize("name", ["compare", "batch"])
def test_nothing_logged_nothing_fetched_everything_named(
    session: browser.Browser, pages: dict[str, Path], name: str
) -> None:
    """No console message, one request (the file), and a name for every element that a screen reader
    stops at."""
    session.log("performance")
    session.open(pages[name].as_uri())
    assert [entry["message"] for entry in session.log("browser")] == []
    messages = [json.loads(e["message"])["message"] for e in session.log("performance")]
    asked = [
        m["params"]["request"]["url"]
        for m in messages
        if m["method"] == "Network.requestWillBeSent"
        and m["params"]["documentURL"].startswith("file:")
    ]
    assert [url for url in asked if not url.startswith("data:")] == [pages[name].as_uri()]
    nodes = session.devtools("Accessibility.getFullAXTree")["nodes"]
    roles = {"image", "img", "searchbox", "button", "link", "table", "region"}
    stops = [n for n in nodes if n["role"]["value"] in roles and not n.get("ignored")]
    assert {"table", "region", "button"} <= {n["role"]["value"] for n in stops}
    assert any(n["role"]["value"] in ("image", "img") for n in stops)
    assert all(n.get("name", {}).get("value", "").strip() for n in stops)


def _press(session: browser.Browser, key: str, code: int) -> None:
    """A real key press on the focused element."""
    shared = {"key": key, "code": key, "windowsVirtualKeyCode": code}
    session.devtools("Input.dispatchKeyEvent", type="keyDown", text="\r", **shared)
    session.devtools("Input.dispatchKeyEvent", type="keyUp", **shared)


def test_the_keyboard_sorts_and_unknown_values_stay_last(
    session: browser.Browser, pages: dict[str, Path]
) -> None:
    """Enter on a heading sorts by number, a second time in reverse; the failed scenario is last
    both times."""
    session.open(pages["batch"].as_uri())
    session.run("""
      window.table = document.getElementById("scenarios");
      window.at = [...table.tHead.rows[0].cells].findIndex((c) => c.textContent === "value");
      table.tHead.rows[0].cells[at].querySelector("button").focus();""")
    script = """return [[...table.tBodies[0].rows].map((r) => r.cells[at].dataset.v),
                        table.tHead.rows[0].cells[at].getAttribute("aria-sort")];"""
    _press(session, "Enter", 13)
    up, told = session.run(script)
    _press(session, "Enter", 13)
    down, then = session.run(script)
    numbers = [float(v) for v in up[:-1]]
    assert len(numbers) == 60 and numbers == sorted(numbers) and up[-1] is None
    assert [float(v) for v in down[:-1]] == numbers[::-1] and down[-1] is None
    assert (told, then) == ("ascending", "descending")


def test_typing_filters_and_counts(session: browser.Browser, pages: dict[str, Path]) -> None:
    """A row stays if it has all the words; the live region says how many rows are left."""
    session.open(pages["batch"].as_uri())
    session.run('document.querySelector("input[data-filter=scenarios]").focus();')
    session.devtools("Input.insertText", text="cpsat optimal")
    shown, total, told, live = session.run("""
      const rows = [...document.getElementById("scenarios").tBodies[0].rows];
      const count = document.getElementById("scenarios-count");
      return [rows.filter((r) => !r.hidden).map((r) => r.textContent), rows.length,
              count.textContent, count.getAttribute("aria-live")];""")
    assert len(shown) == 12 and all("cpsat" in text for text in shown)
    assert (told, live) == (f"12 of {total} rows", "polite")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_series_stand_out_in_both_themes(
    session: browser.Browser, pages: dict[str, Path], scheme: str
) -> None:
    """Lines contrast with the background by at least 3 (WCAG 2.2, 1.4.11); none differs by colour
    alone."""
    session.devtools(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
    )
    session.open(pages["batch"].as_uri())
    back, strokes, dashes = session.run("""
      const svg = document.querySelector("svg[role=img]");
      const found = Array.from({length: 8}, (_, i) => {
        const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
        line.setAttribute("class", `series s${i}`); svg.append(line);
        return getComputedStyle(line);});
      return [getComputedStyle(document.body).backgroundColor, found.map((s) => s.stroke),
              found.map((s) => s.strokeDasharray)];""")
    light = browser.luminance(back)
    for stroke in strokes:
        high, low = max(light, browser.luminance(stroke)), min(light, browser.luminance(stroke))
        assert (high + 0.05) / (low + 0.05) >= 3, stroke
    assert len(set(dashes)) == 8
