"""Fixtures every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Property tests are judged by what they find, never by how long a loaded machine takes. They draw
# the same examples every time, so that a failure can be repeated; EXPLORE=1 draws new ones.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile("explore" if os.environ.get("EXPLORE") else "repeatable")

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of reference data beside the checkout; without it, the test is skipped."""
    data = SHARED / "data"
    if not data.is_dir():
        pytest.skip("reference data (../shared/data) is not beside this checkout")
    return data
