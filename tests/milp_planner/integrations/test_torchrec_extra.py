"""What happens without the torchrec extra, and a visible skip for the tests that need it."""

from __future__ import annotations

import sys

import pytest

import milp_planner.integrations.torchrec as integration
from milp_planner.errors import MissingExtra


def test_extra_is_installed() -> None:
    """With TorchRec here, the folder ``torchrec/`` beside this file runs; without it, it skips."""
    pytest.importorskip("torchrec", reason="torchrec extra absent: tests/…/torchrec left out")


def test_missing_extra_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without TorchRec every name of the integration says what to install."""
    monkeypatch.setitem(sys.modules, "torchrec", None)
    with pytest.raises(MissingExtra, match=r"pip install 'milp-planner\[torchrec\]'"):
        _ = integration.MilpShardingPlanner


def test_unknown_name_is_an_attribute_error() -> None:
    """A misspelt name is no missing extra."""
    with pytest.raises(AttributeError, match="MilpPlanner"):
        _ = integration.MilpPlanner


def test_importing_the_package_does_not_import_torch() -> None:
    """The package itself is light: nothing of TorchRec is loaded by its import."""
    import subprocess

    code = "import sys, milp_planner.integrations.torchrec; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
