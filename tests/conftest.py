"""Fixtures every test may use."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of reference data beside the checkout; the test skips where it is absent."""
    data = SHARED / "data"
    if not data.is_dir():
        pytest.skip("reference data (../shared/data) is not beside this checkout")
    return data
