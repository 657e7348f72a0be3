"""What happens with a TorchRec that has no planning service; its own tests are in ``service/``."""

from __future__ import annotations

import pytest
import torchrec

import milp_planner.integrations.torchrec.service as service
from milp_planner.errors import MissingExtra

from .service.conftest import HAS_SERVICE


def test_service_is_there() -> None:
    """From TorchRec 1.9 the folder ``service/`` beside this file runs; before, it skips."""
    if not HAS_SERVICE:
        pytest.skip(f"TorchRec {torchrec.__version__} has no planning service: service/ left out")


def test_an_older_torchrec_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the service every name of the package says which TorchRec has it."""
    monkeypatch.setattr(service, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"came with 1\.9; run `pip install --no-deps"):
        _ = service.MilpPlannerProvider
    with pytest.raises(AttributeError, match="MilpProvider"):
        _ = service.MilpProvider
