"""The stand-alone checker and ``verify`` end alike (benchmarks/proofs/agree.py, in short)."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
#: Instances of forged outcomes, and what only ``verify`` sees in a file: inputs that are not priced
#: so any more, or the fingerprint of another instance.
WITH = {"oA2": "B", "oC2": "B", "repro_packdos_out": "repro_packdos_inst"}
ONLY_VERIFY = {"oA2": (0, 2), "oC2": (0, 2), "r3_question": (0, 1), "r3_f28": (3, 1)}


def load() -> ModuleType:
    """The benchmark."""
    spec = importlib.util.spec_from_file_location("agree", ROOT / "benchmarks/proofs/agree.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_on_changed_files() -> None:
    """Exit codes are the same; every code but that of too long certificates is among them."""
    found, differ = load().tried(400, 10, seed=7)
    assert differ == []
    assert min(found["0"], found["1"], found["2"]) > 10


@pytest.mark.skipif(not DATA.is_dir(), reason="needs ../shared")
def test_on_forged_and_damaged_files() -> None:
    """On each of them, but for what only ``verify`` looks at."""
    both = load().both
    forged = [f for f in (DATA / "forged").glob("*.json") if "inst" not in f.stem and f.stem != "B"]
    damaged = [*(DATA / "bad-files").glob("[op]*.json")]
    assert len(forged) > 20 and len(damaged) > 5
    for path in forged + damaged:
        plan = json.loads(path.read_text()).get("format") == "milp-planner-plan/1"
        with_ = None if plan else DATA / "forged" / f"{WITH.get(path.stem, 'ex_inst')}.json"
        alone, ours, said = both(path, with_)
        assert (alone, ours) == ONLY_VERIFY.get(path.stem, (alone, alone)), said
        assert 70 not in (alone, ours)
