"""What happens without the torchrec extra, and a visible skip of the tests that need it."""

import importlib
import sys

import pytest

from milp_planner.errors import MissingExtra

PACKAGE = "milp_planner.integrations.torchrec"


def test_extra_is_installed() -> None:
    """With TorchRec installed, ``torchrec/`` beside this file runs; without, this skips."""
    pytest.importorskip("torchrec", reason="torchrec extra absent: tests/…/torchrec left out")


def test_missing_extra_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing the integration, or a part of it, without TorchRec says what to install."""
    for name in [name for name in sys.modules if name.startswith(PACKAGE)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torchrec", None)
    for name in (PACKAGE, f"{PACKAGE}.service", f"{PACKAGE}.dynamicemb"):
        with pytest.raises(MissingExtra, match=r"pip install 'milp-planner\[torchrec\]'"):
            importlib.import_module(name)


def test_exports_need_no_torchrec() -> None:
    """Modules that only write and read files do not load TorchRec."""
    import subprocess

    code = (
        "import sys, milp_planner.integrations.exports.torchrec as format; "
        "print(format.FORMAT, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["milp-planner-torchrec/1", "False"]
