"""Batches of these tests run in this process; tests of ``run_local`` itself start others."""

import pytest

from scenarios.batch import runner
from tests.scenarios.batch.small import here


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process would only import everything again."""
    monkeypatch.setattr(runner, "run_local", here)
