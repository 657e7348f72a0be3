"""A real Ray on this machine gives the answers of local processes."""

from pathlib import Path

import pytest

from scenarios.batch.runner import run_batch
from tests.scenarios.batch.small import suite

pytest.importorskip("ray")


@pytest.mark.slow
def test_ray_gives_the_same_answers(tmp_path: Path) -> None:
    """Objectives and statuses agree, and either engine continues where the other stopped."""
    local = run_batch(suite(), tmp_path / "local", workers=1)
    on_ray = run_batch(suite(), tmp_path / "ray", engine="ray", workers=1)
    assert on_ray.solved == 4 and "failed" not in on_ray.counts
    for ours, theirs in zip(local.results, on_ray.results, strict=True):
        for field in ("key", "status", "objective", "instance"):
            assert ours[field] == theirs[field]
    assert run_batch(suite(), tmp_path / "ray", workers=1).solved == 0
