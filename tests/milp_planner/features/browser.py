"""A headless Chromium through its WebDriver, with nothing but the standard library.

Speaks the W3C WebDriver protocol (https://www.w3.org/TR/webdriver2/) to ``chromedriver``.
"""

import json
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


def available() -> bool:
    """Whether chromedriver and a Chromium are installed."""
    return bool(
        shutil.which("chromedriver") and (shutil.which("chromium") or shutil.which("google-chrome"))
    )


class Browser:
    """One session."""

    def __init__(self, port: int, profile: str) -> None:
        self._base = f"http://127.0.0.1:{port}"
        binary = shutil.which("chromium") or shutil.which("google-chrome")
        options = {"args": [*_FLAGS, f"--user-data-dir={profile}"], "binary": binary}
        wanted = {
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        found = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._base += f"/session/{found['sessionId']}"

    def open(self, url: str) -> None:
        """Load a page and wait for it."""
        self._call("POST", "/url", {"url": url})

    def run(self, script: str) -> Any:
        """The value of a JavaScript function body."""
        return self._call("POST", "/execute/sync", {"script": script, "args": []})

    def devtools(self, command: str, **parameters: object) -> Any:
        """Run a DevTools command, such as an emulated colour scheme."""
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def log(self, kind: str) -> list[dict[str, Any]]:
        """The log ``browser`` (console) or ``performance`` (which includes the network)."""
        found: list[dict[str, Any]] = self._call("POST", "/se/log", {"type": kind})
        return found

    def quit(self) -> None:
        """End the session."""
        self._call("DELETE", "")

    def _call(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._base + path, data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()[:500]) from None


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser with a fresh profile, ended afterwards."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    driver = shutil.which("chromedriver")
    assert driver
    process = subprocess.Popen([driver, f"--port={port}", "--silent"])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        try:
            _wait(port)
            session = Browser(port, profile)
            try:
                yield session
            finally:
                session.quit()
        finally:
            process.terminate()
            process.wait(30)


def luminance(colour: str) -> float:
    """Relative luminance of ``rgb(r, g, b)`` (WCAG 2.2, definition)."""
    parts = [float(v) / 255 for v in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Ratio of two colours (WCAG 2.2): 4.5 and more is legible text."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _wait(port: int) -> None:
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError("chromedriver did not start")
