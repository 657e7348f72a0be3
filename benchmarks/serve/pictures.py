"""The service's page as docs/serve.md shows it: ``python -m benchmarks.serve.pictures``.

Plans kuairand-27k on an A10 in a headless Chromium, drags HBM to 70%, and writes the page in both
schemes to docs/figures.
"""

import time
from base64 import b64decode
from pathlib import Path

from tests.milp_planner.features.browser import Browser, browser
from tests.milp_planner.serve.served import command

FIGURES = Path(__file__).parents[2] / "docs" / "figures"
WIDTH = 1000


def main() -> None:
    """Plan, drag, write."""
    with command() as (address, _), browser() as page:
        page.open(address)
        _until(page, "return document.getElementById('cluster').value.length > 0")
        page.run("document.getElementById('plan').click()")
        _until(page, "return !document.getElementById('what-if').disabled")
        before = page.run("return document.getElementById('status').textContent")
        page.run(
            "const hbm = document.getElementById('hbm'); hbm.value = 70;"
            "hbm.dispatchEvent(new Event('input'))"
        )
        _until(page, f"const now = document.getElementById('status').textContent;"
                     f"return now.includes('certified ≥') && now !== {before!r}")  # fmt: skip
        for scheme in ("light", "dark"):
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            page.devtools("Emulation.setEmulatedMedia", features=features)
            height = page.run("return document.documentElement.scrollHeight")
            page.devtools(
                "Emulation.setDeviceMetricsOverride", width=WIDTH, height=height,
                deviceScaleFactor=1, mobile=False,
            )  # fmt: skip
            shot = page.devtools("Page.captureScreenshot", format="png")
            (FIGURES / f"serve-{scheme}.png").write_bytes(b64decode(shot["data"]))


def _until(page: Browser, script: str, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not page.run(script):
        if time.monotonic() > end:
            raise TimeoutError(page.run("return document.body.innerText")[:500])
        time.sleep(0.2)


if __name__ == "__main__":
    main()
