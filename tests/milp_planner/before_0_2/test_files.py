"""Files that version 0.1.0 (commit 55004ff) read and wrote; it wrote ``plan.json`` itself."""

import json
import shutil
from pathlib import Path

import pytest

import milp_planner
from milp_planner import plan, read_plan
from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.files import load_cluster, load_model

HERE = Path(__file__).parent


def test_model_and_cluster_are_read_and_mean_the_same() -> None:
    """Every field has the value that it had then; new fields have their defaults."""
    model, cluster = load_model(HERE / "model.yaml"), load_cluster(HERE / "cluster.yaml")
    old = json.loads((HERE / "plan.json").read_text())
    for now, then in ((model.to_dict(), old["model"]), (cluster.to_dict(), old["cluster"])):
        assert _without_new(now, then) == then
    assert Model.from_dict(old["model"]) == model
    assert Cluster.from_dict(old["cluster"]) == cluster
    assert plan(model, cluster, time_limit=5).tables


def _without_new(now: object, then: object) -> object:
    """The value read now, restricted to the fields that were written then."""
    if isinstance(now, dict) and isinstance(then, dict):
        return {key: _without_new(now.get(key), value) for key, value in then.items()}
    if isinstance(now, list) and isinstance(then, list):
        assert len(now) == len(then)
        return [_without_new(a, b) for a, b in zip(now, then, strict=True)]
    return now


def test_the_plan_is_refused_in_a_sentence() -> None:
    """Its bytes come from another ledger: the error names the version that wrote it and says to
    plan again."""
    with pytest.raises(BadInput) as refused:
        read_plan(HERE / "plan.json")
    told = f"(0.1.0; this is {milp_planner.__version__})"
    assert told in str(refused.value)
    assert str(refused.value).endswith("plan again")


def test_a_changed_plan_is_refused_too(tmp_path: Path) -> None:
    """A model that does not match its fingerprint is named, before the instance is looked at."""
    path = Path(shutil.copy(HERE / "plan.json", tmp_path))
    path.write_text(path.read_text().replace('"batch_per_rank": 512', '"batch_per_rank": 513'))
    with pytest.raises(BadInput, match="model does not match its fingerprint"):
        read_plan(path)
