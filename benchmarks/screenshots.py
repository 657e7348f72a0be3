"""Pictures of HTML pages for docs/figures/report, taken with a headless Chromium."""

import base64
import io
from pathlib import Path

from PIL import Image

from tests.milp_planner.features.browser import Browser

TARGET = Path(__file__).resolve().parents[1] / "docs" / "figures" / "report"
WIDTH = 1060


def theme(session: Browser, scheme: str) -> None:
    """Make pages appear ``light`` or ``dark``."""
    session.devtools("Emulation.setDeviceMetricsOverride", width=WIDTH, height=900,
                     deviceScaleFactor=1, mobile=False)  # fmt: skip
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    session.devtools("Emulation.setEmulatedMedia", features=features)


def save(session: Browser, name: str, heading: str, height: int) -> None:
    """Write NAME.png of the open page: from a heading (its id; empty: the top) so many pixels down,
    or to the page's end."""
    top = 0
    if heading:
        place = f"document.getElementById('{heading}').getBoundingClientRect().top"
        top = session.run(f"return {place} + scrollY") - 16
    most = session.run("return document.documentElement.scrollHeight") - top
    clip = {"x": 0, "y": top, "width": WIDTH, "height": min(height, most), "scale": 1}
    found = session.devtools("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                             clip=clip)  # fmt: skip
    (TARGET / f"{name}.png").write_bytes(fewer_colours(base64.b64decode(found["data"])))


def fewer_colours(png: bytes) -> bytes:
    """Half the size: 256 colours are enough for flat drawings and text."""
    small = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(256).save(small, "png", optimize=True)
    return small.getvalue()
