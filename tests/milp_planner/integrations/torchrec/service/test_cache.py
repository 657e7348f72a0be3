"""Plans cached by request are used only if they are proved for the current question."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from torchrec.distributed.planner.dry_run.protocols import CacheMetadata, PlanCache

from milp_planner.integrations.torchrec.service import FolderPlans, dry_run

from ..models import bags, topology
from .requests import QUICK, SHAPES, SKUS
from .test_skus import inputs

ROOMY = {"wide": SKUS["wide"]}
NEAR = replace(QUICK, gap=0.5)


class InMemory:
    """A cache that is not ours."""

    def __init__(self) -> None:
        self.kept: dict[str, tuple[Any, CacheMetadata]] = {}

    def get(self, request_fingerprint: str) -> tuple[Any, CacheMetadata] | None:
        return self.kept.get(request_fingerprint)

    def put(self, request_fingerprint: str, plan: Any, metadata: CacheMetadata) -> None:
        self.kept[request_fingerprint] = plan, metadata


def solving(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Counts solves from here on."""
    from milp_planner.integrations.torchrec import stash

    counted = Mock(side_effect=stash.solve)
    monkeypatch.setattr(stash, "solve", counted)
    return counted


@pytest.mark.parametrize("kind", ["folder", "memory"])
def test_a_second_dry_run_solves_nothing(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From our folder or any other cache of the protocol come the same plan, status and bound."""
    plans: Any = FolderPlans(tmp_path) if kind == "folder" else InMemory()
    assert isinstance(plans, PlanCache)
    first = dry_run(inputs(), ROOMY, settings=NEAR, plans=plans)
    solves = solving(monkeypatch)
    again = dry_run(inputs(), ROOMY, settings=NEAR, plans=plans)
    assert solves.call_count == 0
    one, other = (found.results["wide"] for found in (first, again))
    assert str(one.sharding_plan) == str(other.sharding_plan)
    reports = [found.rows[0].report for found in (first, again)]
    assert reports[0] is not None and reports[1] is not None
    assert reports[0].status == reports[1].status
    assert reports[0].bound == reports[1].bound
    stored = plans.get(other.request_fingerprint)
    assert stored is not None and str(stored[0]) == str(one.sharding_plan)
    assert (stored[1].sku, stored[1].world_size) == ("wide", 4)


def test_another_model_under_the_same_fingerprint_is_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """TorchRec's fingerprint ignores the model; the instance does not, and the log says so."""
    plans = FolderPlans(tmp_path)
    first = dry_run(inputs(), ROOMY, settings=NEAR, plans=plans)
    solves = solving(monkeypatch)
    larger = inputs(module=bags([(rows + 1, dim) for rows, dim in SHAPES]))
    again = dry_run(larger, ROOMY, settings=NEAR, plans=plans)
    one, other = (found.results["wide"].request_fingerprint for found in (first, again))
    assert one == other and solves.call_count == 1
    assert "is for another model, cluster or version" in caplog.text


def test_a_plan_without_a_proof_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan from another planner, or one that was changed, is planned anew and replaced."""
    plans = InMemory()
    dry_run(inputs(), ROOMY, settings=NEAR, plans=plans)
    ((key, (plan, metadata)),) = plans.kept.items()
    ((name, text),) = metadata.extra.items()
    solves = solving(monkeypatch)
    for count, extra in enumerate(({}, {name: text[:-8]}, {name: "no base64"}), 1):
        plans.put(key, plan, CacheMetadata("somebody", "wide", 4, extra))
        dry_run(inputs(), ROOMY, settings=NEAR, plans=plans)
        assert solves.call_count == count
        assert plans.kept[key][1].created_by == "milp-planner"


def test_an_empty_folder_knows_nothing(tmp_path: Path) -> None:
    """Neither does a folder whose file was cut off."""
    plans = FolderPlans(tmp_path)
    assert plans.get("anything") is None
    dry_run(inputs(topology=topology(4, 2)), ROOMY, settings=NEAR, plans=plans)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    found = dry_run(inputs(), ROOMY, settings=NEAR).results["wide"]
    assert plans.get(found.request_fingerprint) is None
