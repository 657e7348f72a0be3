"""What happens if TorchRec has no planning service; the service's own tests are in ``service/``."""

import importlib
import sys

import pytest
import torchrec

from milp_planner.errors import MissingExtra

from .service.conftest import HAS_SERVICE


def test_service_is_there() -> None:
    """From TorchRec 1.9 on, the folder ``service/`` beside this file runs; before, this skips."""
    if not HAS_SERVICE:
        pytest.skip(f"TorchRec {torchrec.__version__} has no planning service: service/ left out")


def test_an_older_torchrec_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the service, importing the package says which TorchRec has it."""
    package = "milp_planner.integrations.torchrec.service"
    for name in [name for name in sys.modules if name.startswith(package)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"came with 1\.9; run `pip install --no-deps"):
        importlib.import_module(package)
