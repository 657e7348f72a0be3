"""The page in a real headless Chromium: no error, no request, it sorts, filters and has names."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from milp_planner.features.plan.memory import ON_DARK
from milp_planner.features.report.page import render
from tests.milp_planner.features import browser, plans

pytestmark = pytest.mark.skipif(
    not browser.available(), reason="no chromium and chromedriver on this machine"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[browser.Browser]:
    """The explained page, open in the browser."""
    path: Path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render(plans.explained()), "utf-8")
    with browser.browser() as session:
        session.open(path.as_uri())
        yield session


def test_no_console_message_and_no_request_leaves(page: browser.Browser) -> None:
    """Nothing is logged, and the only request is for the file itself."""
    assert [entry["message"] for entry in page.log("browser")] == []
    asked = []
    for entry in page.log("performance"):
        message = json.loads(entry["message"])["message"]
        params = message.get("params", {})
        if message["method"] != "Network.requestWillBeSent":
            continue
        if params["documentURL"].startswith("file:"):  # not the browser's own first page
            asked.append(params["request"]["url"])
    away = [url for url in asked if not url.startswith(("file:", "data:"))]
    assert away == []
    assert sum(url.startswith("file:") for url in asked) == 1


def test_a_click_sorts_and_another_turns_it_round(page: browser.Browser) -> None:
    """Numbers sort by value, and screen readers are told the direction."""
    script = """
      const table = document.getElementById("ranks");
      const at = [...table.tHead.rows[0].cells].findIndex((c) => c.textContent.startsWith("sum"));
      const button = table.tHead.rows[0].cells[at].querySelector("button");
      const values = () => [...table.tBodies[0].rows].map((r) => Number(r.cells[at].dataset.v));
      button.click(); const up = values(); const first = table.querySelector("[aria-sort]");
      const told = first.getAttribute("aria-sort"); button.click();
      return [up, values(), told, first.getAttribute("aria-sort")];"""
    up, down, told, then = page.run(script)
    assert up == sorted(up)
    assert down == sorted(up, reverse=True)
    assert (told, then) == ("ascending", "descending")


def test_typing_filters(page: browser.Browser) -> None:
    """A row stays if it has all the words, and the number of rows is announced."""
    script = """
      const input = document.querySelector("input[data-filter=why-rows]");
      input.value = "USERS"; input.dispatchEvent(new Event("input"));
      const rows = [...document.getElementById("why-rows").tBodies[0].rows];
      return [rows.filter((r) => !r.hidden).map((r) => r.cells[0].textContent), rows.length,
              document.getElementById("why-rows-count").textContent];"""
    shown, total, told = page.run(script)
    assert shown
    assert set(shown) == {"users"}
    assert told == f"{len(shown)} of {total} rows"


def test_everything_has_an_accessible_name(page: browser.Browser) -> None:
    """By Chromium's own accessibility tree: every picture, field, button, link, table, region."""
    nodes = page.devtools("Accessibility.getFullAXTree")["nodes"]
    roles = {"image", "img", "searchbox", "textbox", "button", "link", "table", "region"}
    seen = set()
    for node in nodes:
        role = node.get("role", {}).get("value", "")
        if role in roles and not node.get("ignored"):
            seen.add(role)
            assert node.get("name", {}).get("value", "").strip(), node
    assert {"button", "link", "table", "region"} <= seen
    assert page.run("return document.documentElement.lang") == "en"
    unnamed = "return [...document.querySelectorAll('table')].filter((t) => !t.caption).length"
    assert page.run(unnamed) == 0
    levels = page.run(
        "return [...document.querySelectorAll('h1,h2,h3')].map((h) => Number(h.tagName[1]))"
    )
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))


def test_the_keyboard_reaches_everything(page: browser.Browser) -> None:
    """Sort buttons, filters and scrolling regions can be focused; the skip link comes first."""
    script = """
      const reach = [...document.querySelectorAll("a[href],button,input,[tabindex='0']")];
      return [reach.every((e) => { e.focus(); return document.activeElement === e; }),
              reach[0].className];"""
    reached, first = page.run(script)
    assert reached
    assert first == "skip"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_both_themes(page: browser.Browser, scheme: str) -> None:
    """Text and soft text contrast with the background by at least 4.5 (WCAG 2.2 AA)."""
    page.devtools(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
    )
    script = """
      const style = (s, p) => getComputedStyle(document.querySelector(s))[p];
      return [style("body", "backgroundColor"), style("body", "color"),
              style("footer", "color"), style("nav a", "color")];"""
    back, *texts = page.run(script)
    assert (browser.luminance(back) > 0.5) == (scheme == "light")
    assert all(browser.contrast(back, text) >= 4.5 for text in texts)


def test_figures_on_the_heat_map_stand_out(page: browser.Browser) -> None:
    """Every share's colour contrasts with its cell, in either theme."""
    script = """
      const svg = document.querySelector("svg[role=img]");
      const back = getComputedStyle(document.body).backgroundColor;
      return [...Array(12).keys()].map((level) => {
        const make = (name, style) => {
          const e = document.createElementNS("http://www.w3.org/2000/svg", name);
          e.setAttribute("class", style); svg.append(e);
          const s = getComputedStyle(e); const found = [s.fill, Number(s.opacity)];
          e.remove(); return found; };
        const dark = level >= arguments[0] ? "on-dark" : "";
        return [back, ...make("rect", "h" + level), make("text", dark)[0]]; });"""
    for scheme in ("light", "dark"):
        page.devtools(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        for back, fill, opacity, text in page.run(script.replace("arguments[0]", str(ON_DARK))):
            cell = _blend(back, fill, opacity)
            assert browser.contrast(cell, text) >= 4.5, (scheme, cell, text)


def test_on_paper_nothing_is_cut_or_dark(page: browser.Browser) -> None:
    """A4 from a dark theme: white ground, nothing scrolls, headings are text, no controls."""
    page.devtools("Emulation.setDeviceMetricsOverride", width=703, height=1000,
                  deviceScaleFactor=1, mobile=False)  # fmt: skip
    page.devtools(
        "Emulation.setEmulatedMedia", media="print",
        features=[{"name": "prefers-color-scheme", "value": "dark"}],
    )  # fmt: skip
    script = """
      const all = (s) => [...document.querySelectorAll(s)];
      const cut = all(".scroll").filter((e) => e.scrollWidth > e.clientWidth + 1
        || e.scrollHeight > e.clientHeight + 1 || e.getBoundingClientRect().right > innerWidth);
      const shown = all("nav,.filter,th button").filter((e) => e.offsetParent !== null);
      const heads = all("thead th").map((e) => getComputedStyle(e, "::before").content);
      return [cut.map((e) => e.getAttribute("aria-label")), shown.length, heads,
              getComputedStyle(document.body).backgroundColor];"""
    try:
        cut, shown, heads, ground = page.run(script)
    finally:
        page.devtools("Emulation.setEmulatedMedia", media="")
        page.devtools("Emulation.clearDeviceMetricsOverride")
    assert cut == []
    assert shown == 0
    assert all(head.strip('"') for head in heads)
    assert ground == "rgb(255, 255, 255)"


def _blend(back: str, fill: str, opacity: float) -> str:
    """The colour of a half-transparent cell."""
    parts = ([float(v) for v in c.removeprefix("rgb(").removesuffix(")").split(",")]
             for c in (back, fill))  # fmt: skip
    mixed = [b + (f - b) * opacity for b, f in zip(*parts, strict=True)]
    return f"rgb({', '.join(map(str, mixed))})"
