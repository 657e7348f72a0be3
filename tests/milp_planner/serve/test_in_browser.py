"""The service's page in a real headless Chromium: it plans, redraws, and logs nothing."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the extra serve is not installed")

from milp_planner.serve.limits import Limits
from tests.milp_planner.features import browser
from tests.milp_planner.serve.served import CLUSTER, MODEL, Client, service

pytestmark = pytest.mark.skipif(
    not browser.available(), reason="no chromium and chromedriver on this machine"
)


@pytest.fixture(scope="module")
def served() -> Iterator[Client]:
    """A service to open the page from."""
    with service(Limits()) as client:
        yield client


@pytest.fixture(scope="module")
def page(served: Client) -> Iterator[browser.Browser]:
    """The page with the small model, pasted and planned."""
    with browser.browser() as session:
        session.open(f"http://127.0.0.1:{served.port}/")
        until(session, "return document.getElementById('cluster').value.length > 0")
        session.run(
            f"""const put = (id, text) => {{ const field = document.getElementById(id);
            field.value = text; field.dispatchEvent(new Event('input')); }};
            put('model', {json.dumps(MODEL)}); put('cluster', {json.dumps(CLUSTER)});
            document.getElementById('seconds').value = 2;
            document.getElementById('plan').click();"""
        )
        until(session, "return !document.getElementById('what-if').disabled")
        yield session


def until(page: browser.Browser, script: str, seconds: float = 60) -> Any:
    """The script's value, once it is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := page.run(script):
            return value
        time.sleep(0.1)
    raise AssertionError(page.run("return document.body.innerText")[:2000])


def test_a_plan_is_drawn_with_its_bound_and_downloads(page: browser.Browser) -> None:
    """It shows the verdict, the curve of plan and bound, memory and time, and the downloads."""
    assert "certified" in page.run("return document.getElementById('status').textContent")
    assert page.run("return document.querySelectorAll('#drawings svg').length") >= 2
    assert page.run("return document.querySelectorAll('#chart svg circle').length") >= 1
    links = page.run(
        "return [...document.querySelectorAll('#downloads a')].map(a => a.textContent)"
    )
    assert {"plan.json", "report.html", "torchrec.txt"} <= set(links)


def test_a_slider_plans_again(page: browser.Browser, served: Client) -> None:
    """With half the HBM and no moves, a job for that cluster starts and the picture changes."""
    before = page.run("return document.getElementById('drawings').innerHTML")
    known = len(served.get("/v1/jobs").json["jobs"])
    page.run(
        """for (const [id, value] of [['hbm', 50], ['moves', 0]]) {
        const field = document.getElementById(id);
        field.value = value; field.dispatchEvent(new Event('input')); }"""
    )
    until(page, f"return document.getElementById('drawings').innerHTML !== {json.dumps(before)}")
    assert page.run("return document.getElementById('hbm-text').textContent") == "8.00 GiB"
    jobs = served.get("/v1/jobs").json["jobs"]
    assert len(jobs) == known + 1
    plan = served.get(f"/v1/jobs/{jobs[-1]['id']}/plan.json").json
    assert {r["hbm"] for m in plan["cluster"]["machines"] for r in m["ranks"]} == {8 * 2**30}


def test_a_mistake_is_said_where_it_is_seen(page: browser.Browser) -> None:
    """The page's status shows the service's sentence."""
    page.run(
        """const field = document.getElementById('model'); field.value = 'name: [';
        field.dispatchEvent(new Event('input')); document.getElementById('plan').click();"""
    )
    until(page, "return document.getElementById('status').className === 'failed'")
    assert "model" in page.run("return document.getElementById('status').textContent")


def test_nothing_is_blocked_or_fetched_elsewhere(page: browser.Browser, served: Client) -> None:
    """No policy is violated and no other host contacted; only the refusal above is logged."""
    logged = [entry["message"] for entry in page.log("browser")]
    assert all("422" in message for message in logged), logged
    urls = []
    for entry in page.log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            urls.append(message["params"]["request"]["url"])
    own = (f"http://127.0.0.1:{served.port}/", "data:", "blob:", "chrome")
    assert [url for url in urls if not url.startswith(own)] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_legible_in_both_schemes(page: browser.Browser, scheme: str) -> None:
    """Buttons, fields and text have a contrast of at least 4.5 (WCAG 2.2)."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.devtools("Emulation.setEmulatedMedia", features=features)
    ground = page.run("return getComputedStyle(document.body).backgroundColor")
    for query in ("body", "#status", ".soft", "textarea", "select", "#stop", "#plan"):
        colour, behind = page.run(
            f"""const s = getComputedStyle(document.querySelector('{query}'));
            return [s.color, s.backgroundColor]"""
        )
        behind = ground if behind.endswith(", 0)") else behind
        assert browser.contrast(colour, behind) >= 4.5, (query, colour, behind)


def test_everything_has_an_accessible_name(page: browser.Browser) -> None:
    """By Chromium's own accessibility tree."""
    nodes = page.devtools("Accessibility.getFullAXTree")["nodes"]
    roles = {"image", "img", "textbox", "combobox", "slider", "spinbutton", "button", "link"}
    nameless = [
        node["role"]["value"] for node in nodes
        if not node.get("ignored") and node.get("role", {}).get("value") in roles
        and not node.get("name", {}).get("value")
    ]  # fmt: skip
    assert nameless == []


@pytest.mark.slow
def test_the_certified_gap_closes_in_while_it_is_solved(page: browser.Browser) -> None:
    """With a model that takes longer, the status line shows the gap beside plan and bound; then the
    job is stopped."""
    page.run(
        """for (const [kind, name] of [['model', 'dlrmv4-yambda5b'], ['cluster', '8xb200-tight']]) {
        const field = document.getElementById(`${kind}-name`);
        field.value = name; field.dispatchEvent(new Event('change')); }
        document.getElementById('seconds').value = 60;
        document.getElementById('plan').click();"""
    )
    shown = "return /certified gap [0-9.]+%/.test(document.getElementById('status').textContent)"
    until(page, shown)
    page.run("document.getElementById('stop').click()")
    until(page, "return document.getElementById('stop').disabled")
