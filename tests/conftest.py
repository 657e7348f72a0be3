"""Fixtures every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Property tests are judged by what they find, never by how long a loaded machine takes; on CI
# they draw the same examples every time, so that a failure there can be repeated.
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of reference data beside the checkout; the test skips where it is absent."""
    data = SHARED / "data"
    if not data.is_dir():
        pytest.skip("reference data (../shared/data) is not beside this checkout")
    return data
