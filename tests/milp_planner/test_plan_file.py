"""plan.json holds all of a plan and notices what was changed in it."""

from __future__ import annotations

import json
from typing import Any

import pytest

import milp_planner.plan_file as plan_file
from formulations.outcome import StoppedBy, nothing
from milp_planner.compile import compile_instance
from milp_planner.errors import BadInput
from milp_planner.options import price
from milp_planner.placement import Plan, decode
from milp_planner.plan_file import plan_from_dict, plan_to_dict
from tests.milp_planner.options.build import cluster, model
from tests.milp_planner.test_placement import plan_of


@pytest.fixture
def plan() -> Plan:
    """A TorchRec and a dynamicemb table on eight ranks."""
    return plan_of(
        cluster(),
        [{"dim": 128}, {"kind": "dynamicemb", "constraints": {"cache_ratios": ["1/3"]}}],
        [
            ("column_wise:2/CACHING/0.5", [[1, 2]]),
            ("row_wise/HYBRID/1/3/roundrobin", [list(range(8))]),
        ],
    )


def through_text(document: dict[str, Any]) -> Any:
    """The document as a file would hand it back."""
    return json.loads(json.dumps(document))


def test_round_trip(plan: Plan) -> None:
    """Inputs, profile, Instance, Outcome, tables and shards come back as they were."""
    document = plan_to_dict(plan)
    back = plan_from_dict(through_text(document))
    assert (back.model, back.cluster, back.profile) == (plan.model, plan.cluster, plan.profile)
    assert back.tables == plan.tables
    assert back.instance.fingerprint == plan.instance.fingerprint
    assert back.shards("t0") == plan.shards("t0")
    assert plan_to_dict(back) == document


def test_large_parts_are_embedded_compressed(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the limit a part is gzip in base64 beside its fingerprint, and reads back the same."""
    monkeypatch.setattr(plan_file, "LARGE", 1000)
    document = plan_to_dict(plan)
    assert set(document["instance"]) == {"encoding", "data"}
    assert document["fingerprints"]["instance"] == plan.instance.fingerprint
    assert plan_to_dict(plan_from_dict(through_text(document))) == document


def test_a_plan_without_placement_round_trips() -> None:
    """Nothing found is an answer too."""
    options = price(model({}), cluster())
    instance = compile_instance(options)
    empty = decode(options, instance, nothing("test", StoppedBy.TIME_LIMIT))
    assert plan_from_dict(through_text(plan_to_dict(empty))).tables == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.update(format="other"), "format is 'other'"),
        (lambda d: d.pop("model"), "the field 'model' is missing"),
        (lambda d: d["model"]["tables"][0].update(rows=7), "model does not match its fingerprint"),
        (lambda d: d["profile"].update(host_only=0.5), "profile does not match its fingerprint"),
        (lambda d: d["tables"][0].update(ranks=[[1, 3]]), "do not say what its outcome says"),
        (lambda d: d["tables"].pop(), "do not say what its outcome says"),
        (lambda d: d.update(tables="all"), "tables must be a list"),
        (lambda d: d.update(model={"encoding": "zip"}), "encoding must be"),
        (
            lambda d: d.update(model={"encoding": "json+gzip+base64", "data": "!"}),
            "the compressed part is damaged",
        ),
    ],
)
def test_changed_files_are_refused(plan: Plan, change: Any, words: str) -> None:
    """One sentence says what was found."""
    document = through_text(plan_to_dict(plan))
    change(document)
    with pytest.raises(BadInput, match=words):
        plan_from_dict(document, "plan.json")


@pytest.mark.parametrize("junk", [None, [], 3, "plan", {}])
def test_junk_is_no_plan(junk: Any) -> None:
    """Anything else is refused, not a traceback."""
    with pytest.raises(BadInput, match="milp-planner-plan/1"):
        plan_from_dict(junk)
