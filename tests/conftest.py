"""Fixtures every test may use."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from milp_planner.pricing import splits

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


@pytest.fixture
def even_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """No worst batch beside the one that is stated: ids fall the same in every step."""
    monkeypatch.setattr(splits, "DEVIATIONS", 0.0)


@pytest.fixture
def production(shared_data: Path, tmp_path: Path) -> tuple[Path, Path]:
    """TorchRec's printed production model and its cluster.

    Lookups of two bytes an element, as printed; HBM also for state in fp32, which the printout's
    planner counts in fp16.
    """
    model, cluster = tmp_path / "model.yaml", tmp_path / "cluster.yaml"
    folder = shared_data / "torchrec-production"
    text = (folder / "model.yaml").read_text(encoding="utf-8")
    if "output_dtype" not in text:
        text = text.replace("{dtype: fp16", "{output_dtype: fp16, dtype: fp16")
    model.write_text(text.replace("tables.csv", str(folder / "tables.csv")), encoding="utf-8")
    text = (folder / "cluster.yaml").read_text(encoding="utf-8")
    cluster.write_text(text.replace("184GiB", "192GiB"), encoding="utf-8")
    return model, cluster
