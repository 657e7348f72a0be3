"""The pages of a plan, a batch and a comparison in a real headless Chromium."""

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from milp_planner.features.plan.memory import ON_DARK
from milp_planner.features.report.page import render
from scenarios.batch.info import batch_of
from scenarios.batch.page import render_batch
from scenarios.compare.page import render_comparison
from tests.milp_planner.features import browser, plans
from tests.scenarios.batch.records import failed, many
from tests.scenarios.batch.test_info import BROKEN
from tests.scenarios.compare.test_facts import info

pytestmark = pytest.mark.skipif(
    not browser.available(), reason="no chromium and chromedriver on this machine"
)
Open = Callable[[str], browser.Browser]
every_page = pytest.mark.parametrize("name", ["plan", "batch", "compare"])
both_themes = pytest.mark.parametrize("scheme", ["light", "dark"])


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Addresses of the pages; one scenario of the batch failed and so has no numbers."""
    folder: Path = tmp_path_factory.mktemp("pages")
    batch = batch_of("suite", "what for", 70, [failed(formulation="greedy"), *many(60)], [BROKEN])
    texts = {"batch": render_batch(batch), "compare": render_comparison(info()),
             "plan": render(plans.explained())}  # fmt: skip
    for name, text in texts.items():
        (folder / name).with_suffix(".html").write_text(text, "utf-8")
    return {name: (folder / name).with_suffix(".html").as_uri() for name in texts}


@pytest.fixture(scope="module")
def shown(pages: dict[str, str]) -> Iterator[Open]:
    """Opens a page, in one browser for all tests."""
    with browser.browser() as session:

        def opened(name: str) -> browser.Browser:
            session.open(pages[name])
            return session

        yield opened


def coloured(page: browser.Browser, scheme: str, **more: str) -> None:
    """Ask for a theme."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.devtools("Emulation.setEmulatedMedia", features=features, **more)


@every_page
def test_nothing_logged_nothing_fetched_everything_named(
    shown: Open, pages: dict[str, str], name: str
) -> None:
    """No console message; one request (the file); a name, by Chromium's own accessibility tree, for
    every element that a screen reader stops at; a caption for every table; headings in order."""
    page = shown(name)
    page.log("performance")
    page = shown(name)
    assert [entry["message"] for entry in page.log("browser")] == []
    messages = [json.loads(e["message"])["message"] for e in page.log("performance")]
    asked = [
        m["params"]["request"]["url"]
        for m in messages
        if m["method"] == "Network.requestWillBeSent"
        and m["params"]["documentURL"].startswith("file:")
    ]
    assert [url for url in asked if not url.startswith("data:")] == [pages[name]]
    nodes = page.devtools("Accessibility.getFullAXTree")["nodes"]
    roles = {"image", "img", "searchbox", "textbox", "button", "link", "table", "region"}
    stops = [n for n in nodes if n.get("role", {}).get("value") in roles and not n.get("ignored")]
    assert {"button", "link", "table", "region"} <= {n["role"]["value"] for n in stops}
    assert any(n["role"]["value"] in ("image", "img") for n in stops)
    assert all(n.get("name", {}).get("value", "").strip() for n in stops)
    unnamed = "return [...document.querySelectorAll('table')].filter((t) => !t.caption).length"
    assert (page.run("return document.documentElement.lang"), page.run(unnamed)) == ("en", 0)
    levels = page.run(
        "return [...document.querySelectorAll('h1,h2,h3')].map((h) => Number(h.tagName[1]))"
    )
    assert levels[0] == 1 and all(b - a <= 1 for a, b in itertools.pairwise(levels))


@every_page
def test_the_keyboard_reaches_everything(shown: Open, name: str) -> None:
    """Sort buttons, filters and scrolling regions can be focused; the skip link comes first."""
    script = """
      const seen = (e) => e.checkVisibility();
      const reach = [...document.querySelectorAll("a[href],button,input,[tabindex='0']")];
      return [reach.filter(seen).every((e) => { e.focus(); return document.activeElement === e; }),
              reach[0].className];"""
    assert shown(name).run(script) == [True, "skip"]


def _press(session: browser.Browser, key: str, code: int) -> None:
    """A real key press on the focused element."""
    shared = {"key": key, "code": key, "windowsVirtualKeyCode": code}
    session.devtools("Input.dispatchKeyEvent", type="keyDown", text="\r", **shared)
    session.devtools("Input.dispatchKeyEvent", type="keyUp", **shared)


def test_the_keyboard_sorts_and_unknown_values_stay_last(shown: Open) -> None:
    """Enter on a heading sorts by number, a second time in reverse, and screen readers are told;
    the failed scenario is last both times."""
    page = shown("batch")
    page.run("""
      window.table = document.getElementById("scenarios");
      window.at = [...table.tHead.rows[0].cells].findIndex((c) => c.textContent === "value");
      table.tHead.rows[0].cells[at].querySelector("button").focus();""")
    script = """return [[...table.tBodies[0].rows].map((r) => r.cells[at].dataset.v),
                        table.tHead.rows[0].cells[at].getAttribute("aria-sort")];"""
    _press(page, "Enter", 13)
    up, told = page.run(script)
    _press(page, "Enter", 13)
    down, then = page.run(script)
    numbers = [float(v) for v in up[:-1]]
    assert len(numbers) == 60 and numbers == sorted(numbers) and up[-1] is None
    assert [float(v) for v in down[:-1]] == numbers[::-1] and down[-1] is None
    assert (told, then) == ("ascending", "descending")


def test_typing_filters_and_counts(shown: Open) -> None:
    """A row stays if it has all the words, in any case; the live region says how many are left."""
    page = shown("batch")
    page.run('document.querySelector("input[data-filter=scenarios]").focus();')
    page.devtools("Input.insertText", text="CPSAT optimal")
    left, total, told, live = page.run("""
      const rows = [...document.getElementById("scenarios").tBodies[0].rows];
      const count = document.getElementById("scenarios-count");
      return [rows.filter((r) => !r.hidden).map((r) => r.textContent), rows.length,
              count.textContent, count.getAttribute("aria-live")];""")
    assert len(left) == 12 and all("cpsat" in text for text in left)
    assert (told, live) == (f"12 of {total} rows", "polite")


@both_themes
def test_text_and_series_stand_out_in_both_themes(shown: Open, scheme: str) -> None:
    """Text contrasts with the background by at least 4.5 (WCAG 2.2 AA), lines by 3 (1.4.11); no
    line differs by colour alone."""
    page = shown("batch")
    coloured(page, scheme)
    back, texts, strokes, dashes = page.run("""
      const style = (s, p) => getComputedStyle(document.querySelector(s))[p];
      const svg = document.querySelector("svg[role=img]");
      const found = Array.from({length: 8}, (_, i) => {
        const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
        line.setAttribute("class", `series s${i}`); svg.append(line);
        return getComputedStyle(line);});
      return [style("body", "backgroundColor"),
              ["body", "footer", "nav a"].map((each) => style(each, "color")),
              found.map((s) => s.stroke), found.map((s) => s.strokeDasharray)];""")
    assert (browser.luminance(back) > 0.5) == (scheme == "light")
    assert all(browser.contrast(back, text) >= 4.5 for text in texts)
    assert all(browser.contrast(back, stroke) >= 3 for stroke in strokes)
    assert len(set(dashes)) == 8


@both_themes
def test_figures_on_the_heat_map_stand_out(shown: Open, scheme: str) -> None:
    """Every share's colour contrasts with its cell, in either theme."""
    page = shown("plan")
    coloured(page, scheme)
    script = """
      const svg = document.querySelector("svg[role=img]");
      const back = getComputedStyle(document.body).backgroundColor;
      return [...Array(12).keys()].map((level) => {
        const make = (name, style) => {
          const e = document.createElementNS("http://www.w3.org/2000/svg", name);
          e.setAttribute("class", style); svg.append(e);
          const s = getComputedStyle(e); const found = [s.fill, Number(s.opacity)];
          e.remove(); return found; };
        const dark = level >= ON_DARK ? "on-dark" : "";
        return [back, ...make("rect", "h" + level), make("text", dark)[0]]; });"""
    for back, fill, opacity, text in page.run(script.replace("ON_DARK", str(ON_DARK))):
        cell = _blend(back, fill, opacity)
        assert browser.contrast(cell, text) >= 4.5, (cell, text)


@pytest.mark.parametrize("name", ["plan", "compare"])
def test_on_paper_nothing_is_cut_or_dark(shown: Open, name: str) -> None:
    """A4 from a dark theme: white ground, nothing scrolls, headings are text, no controls. (A
    batch's scenarios are printed across.)"""
    page = shown(name)
    page.devtools("Emulation.setDeviceMetricsOverride", width=703, height=1000,
                  deviceScaleFactor=1, mobile=False)  # fmt: skip
    coloured(page, "dark", media="print")
    script = """
      const all = (s) => [...document.querySelectorAll(s)];
      const cut = all(".scroll").filter((e) => e.scrollWidth > e.clientWidth + 1
        || e.scrollHeight > e.clientHeight + 1 || e.getBoundingClientRect().right > innerWidth);
      const shown = all("nav,.filter,th button").filter((e) => e.offsetParent !== null);
      const heads = all("thead th").map((e) => getComputedStyle(e, "::before").content);
      return [cut.map((e) => e.getAttribute("aria-label")), shown.length, heads,
              getComputedStyle(document.body).backgroundColor];"""
    try:
        cut, controls, heads, ground = page.run(script)
    finally:
        page.devtools("Emulation.setEmulatedMedia", media="")
        page.devtools("Emulation.clearDeviceMetricsOverride")
    assert (cut, controls, ground) == ([], 0, "rgb(255, 255, 255)")
    assert all(head.strip('"') for head in heads)


def _blend(back: str, fill: str, opacity: float) -> str:
    """The colour of a half-transparent cell."""
    parts = ([float(v) for v in c.removeprefix("rgb(").removesuffix(")").split(",")]
             for c in (back, fill))  # fmt: skip
    mixed = [b + (f - b) * opacity for b, f in zip(*parts, strict=True)]
    return f"rgb({', '.join(map(str, mixed))})"
