"""The stand-alone checker and ``verify`` reach the same verdict (benchmarks/proofs/agree.py, in
short)."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from formulations import checker

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
#: Instances of forged outcomes.
WITH = {"oA2": "B", "oC2": "B", "repro_packdos_out": "repro_packdos_inst"}
#: Exit codes of checker and ``verify`` for files with a right fingerprint, where the two differ:
#: only ``verify`` derives tables and prices, and it cannot derive the prices of another version.
ONLY_VERIFY = {"r3_question": (0, 3)}


def load() -> ModuleType:
    """The benchmark."""
    spec = importlib.util.spec_from_file_location("agree", ROOT / "benchmarks/proofs/agree.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_on_changed_files() -> None:
    """Both exit with the same code; every code except 3 (too long certificates) occurs."""
    found, differ = load().tried(400, 10, seed=7)
    assert differ == []
    assert min(found["0"], found["1"], found["2"]) > 10


def corpus() -> list[tuple[Path, Path | None]]:
    """Forged and damaged plans and outcomes, each outcome with its instance."""
    found = [f for f in (DATA / "forged").glob("*.json") if "inst" not in f.stem and f.stem != "B"]
    found += (DATA / "bad-files").glob("[op]*.json")
    plans = [json.loads(f.read_text()).get("format") == "milp-planner-plan/1" for f in found]
    outcomes = [DATA / "forged" / f"{WITH.get(f.stem, 'ex_inst')}.json" for f in found]
    return [(f, None if p else o) for f, p, o in zip(found, plans, outcomes, strict=True)]


needs_shared = pytest.mark.skipif(not DATA.is_dir(), reason="needs ../shared/data")


@needs_shared
def test_on_forged_and_damaged_files() -> None:
    """Both refuse every file, at least because its fingerprints are of another kind."""
    assert len(corpus()) > 30
    both = load().both
    for path, instance in corpus():
        alone, ours, said = both(path, instance)
        assert (alone, ours) == (2, 2), said


@needs_shared
def test_on_the_same_with_their_fingerprints_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With right fingerprints, the two differ only in what ``verify`` alone looks at."""
    monkeypatch.setattr(checker, "MOST_STEPS", 10**6)  # one of them takes more than the limit
    agree, said = load(), dict[str, tuple[int, int]]()
    for path, instance in corpus():
        document = agree.named_anew(json.loads(path.read_text()), instance)
        (tmp_path / "file.json").write_text(json.dumps(document))
        said[path.stem] = agree.both(tmp_path / "file.json", instance)[:2]
    assert {name: codes for name, codes in said.items() if codes[0] != codes[1]} == ONLY_VERIFY
    assert {code for codes in said.values() for code in codes} == {0, 1, 2, 3}
