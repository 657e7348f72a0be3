"""What a running TorchRec can be changed to, row by row, and plans restricted to it.

Models and clusters from objects and paths.
"""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formulations.result.check import check
from formulations.result.placement import Placement
from milp_planner import Cluster, Model, Plan, plan, read_plan, verify
from milp_planner.errors import BadInput
from milp_planner.features.moves.again import Moves
from milp_planner.inputs.table import Table
from milp_planner.plans.compile import to_cluster, to_model
from milp_planner.plans.live import Form, in_order, twice_on, why_not
from tests.milp_planner.cli.conftest import CLUSTER
from tests.milp_planner.cli.conftest import MODEL as MODEL_TEXT
from tests.milp_planner.features.small import MODEL, cluster

WHOLE = Form("table_wise", "HBM_ONLY", Fraction(1), 64, False)
CUT = WHOLE._replace(sharding="column_wise", width=32)


def table(**fields: Any) -> Table:
    """A pooled table of TorchRec."""
    return Table.from_dict({"name": "t", "rows": 1000, "dim": 64, **fields}, "t")


@pytest.mark.parametrize(
    ("fields", "optimizer", "old", "new", "why"),
    [
        ({}, "rowwise_adagrad", WHOLE, WHOLE, None),
        ({}, "rowwise_adagrad", CUT, CUT, None),
        ({}, "adagrad", CUT, CUT._replace(width=16), None),
        ({}, "adam", CUT, CUT, "adam may have more"),
        ({}, "rowwise_adagrad", CUT, CUT._replace(width=16), "keeps a state for each row"),
        ({}, "sgd", WHOLE, CUT, "sharding type changes (table_wise to column_wise)"),
        ({}, "sgd", CUT, WHOLE, "sharding type changes"),
        ({}, "sgd", WHOLE._replace(sharding="row_wise"), WHOLE, "sharding type changes"),
        *(
            ({}, "sgd", WHOLE, WHOLE._replace(sharding=kind), f"{kind} is no target")
            for kind in (
                "row_wise", "table_row_wise", "table_column_wise", "grid_shard", "data_parallel"
            )
        ),
        ({}, "sgd", WHOLE, WHOLE._replace(mode="HOST_ONLY", ratio=Fraction(0)), "kernel changes"),
        ({}, "sgd", WHOLE, WHOLE._replace(stash=True), "kernel changes"),
        (
            {}, "sgd", *[WHOLE._replace(mode="CACHING", ratio=Fraction(1, 2))] * 2,
            "may be newer in the cache",
        ),
        ({"output": "sequence", "sequence_length": 3}, "sgd", WHOLE, WHOLE, "EmbeddingBag"),
        ({"kind": "dynamicemb"}, "sgd", WHOLE, WHOLE, "EmbeddingBag"),
    ],
)  # fmt: skip
def test_every_row_of_what_is_executable(
    fields: dict[str, Any], optimizer: str, old: Form, new: Form, why: str | None
) -> None:
    """Same type, kernel and (with a state a row) width: yes; anything else: no, with the reason."""
    found = why_not(table(**fields), optimizer, old, new)
    assert found is None if why is None else why in (found or "")


def test_two_shards_on_a_rank() -> None:
    """A source may have them, a target may not."""
    assert twice_on(((1, 1),)) and twice_on(((0,), (0,))) and not twice_on(((0, 1),))


def model(loads: tuple[float, ...], **more: Any) -> Model:
    """Tables cut by columns or whole, one for each load; equal sizes."""
    kinds = ("table_wise", "column_wise", "table_wise", "table_wise")
    tables = [
        {
            "name": f"t{i}", "rows": "100k", "dim": 64, "pooling_factor": load,
            "constraints": {"sharding_types": [kind], "modes": ["HBM_ONLY"]},
        }
        for i, (load, kind) in enumerate(zip(loads, kinds, strict=False))
    ]  # fmt: skip
    return Model.from_dict({"name": "m", "workload": {"batch_per_rank": 512}, "tables": tables})


@cache
def first(loads: tuple[float, ...] = (8, 2, 3, 1), machines: int = 2, hbm: str = "4GiB") -> Plan:
    """A proved plan with the two halves of t1 on ranks 0 and 1."""
    document = model(loads).to_dict()
    document["tables"][1]["constraints"]["pin"] = {"ranks": [0, 1]}
    given = Model.from_dict(document)
    return plan(given, cluster(machines, hbm=hbm), formulation="cpsat", time_limit=30)


def test_a_plan_moves_only_what_can_move(tmp_path: Any) -> None:
    """Another load moves tables; every move is executable, the plan verifies and survives its
    file; one that claims it without the restriction is refuted."""
    before, today = first(), model((1, 2, 3, 9))
    found = plan(today, cluster(2), start=before, executable="torchrec", time_limit=10)
    assert found.status == "optimal" and found.executable == "torchrec"
    for old, new in zip(before.tables, found.tables, strict=True):
        assert (old.sharding_type, old.column_width) == (new.sharding_type, new.column_width)
        assert not twice_on(new.ranks)
    found.save(tmp_path / "p.json")
    again = read_plan(tmp_path / "p.json")
    assert again.executable == "torchrec" and verify(again).ok
    assert not verify(replace(again, executable=None)).ok


def test_what_cannot_move_stays() -> None:
    """A row-wise table keeps its option, a table with two shards on a rank its ranks, although
    both would move if they could."""
    document = model((3, 90, 3, 1)).to_dict()
    _, cut, whole, _ = document["tables"]
    cut["constraints"]["pin"] = {"column_width": 32, "ranks": [0, 0]}
    whole["constraints"]["sharding_types"] = ["row_wise"]
    place = cluster(2).model_copy(update={"profile": "torchrec-default"})
    old = plan(Model.from_dict(document), place, formulation="cpsat", time_limit=30)
    del cut["constraints"]["pin"]
    whole["constraints"]["sharding_types"] = ["row_wise", "table_wise"]
    now = Model.from_dict(document)
    free, held = (
        plan(
            now, place, start=old, executable=runtime, max_moved=Moves(within=0.0),
            formulation="cpsat", time_limit=30,
        )
        for runtime in (None, "torchrec")
    )  # fmt: skip
    assert held.table("t1").ranks == ((0, 0),) != free.table("t1").ranks
    assert held.table("t2").sharding_type == "row_wise" != free.table("t2").sharding_type
    assert (held.outcome.objective or 0) > (free.outcome.objective or 0)


def test_both_copies_must_fit() -> None:
    """Where half of a rank's memory is in use, there is no room for a second copy: proved, though
    the same question has a plan without the restriction."""
    tight = cluster(1, hbm="100MiB")
    before = first(machines=1, hbm="100MiB")
    assert before.status == "optimal"
    again = plan(
        model((8, 2, 3, 1)), tight, start=before, executable="torchrec", time_limit=60,
    )  # fmt: skip
    assert again.status == "infeasible"
    roomy = cluster(1, hbm="340MiB")
    assert plan(
        model((8, 2, 3, 1)), roomy, start=before, executable="torchrec", time_limit=60,
    ).status == "optimal"  # fmt: skip


def test_the_best_executable_plan_by_brute_force() -> None:
    """No placement that a reshard can make is cheaper: every rank of three tables is tried."""
    old = first((8, 2, 3), machines=1)
    found = plan(
        model((1, 2, 9)), cluster(1), start=old, executable="torchrec", formulation="cpsat",
        time_limit=30,
    )  # fmt: skip
    instance, best = found.instance, found.outcome.placement
    assert best is not None
    costs = []
    for code in range(2**3):
        ranks = [code >> bit & 1 for bit in range(3)]
        columns = [ranks[1], 1 - ranks[1]]  # one shard a rank
        places = [[np.array([ranks[0]])], [np.array(columns)], [np.array([ranks[2]])]]
        verdict = check(instance, Placement(best.options, places))
        if verdict.feasible:
            costs.append(verdict.objectives["step_time"])
    assert found.outcome.objective == min(costs) and len(costs) > 1


@pytest.mark.parametrize(
    ("names", "gone"),
    [
        (("t0", "t1", "t2", "t3", "t4"), "t4 is new"),
        (("t0", "t1", "t2"), "t3 is in the running plan"),
        (("t0", "t1"), "t2, t3 are in the running plan"),
    ],
)
def test_other_tables_need_a_restart(names: tuple[str, ...], gone: str) -> None:
    """TorchRec's reshard keeps modules and tables, so a new or missing table is told."""
    document = model((8, 2, 3, 1)).to_dict()
    tables = {table["name"]: table for table in document["tables"]}
    tables["t4"] = {"name": "t4", "rows": "100k", "dim": 64}
    now = Model.from_dict({**document, "tables": [tables[name] for name in names]})
    with pytest.raises(BadInput, match=gone):
        plan(now, cluster(2), start=first(), executable="torchrec")


@pytest.mark.parametrize(
    "change", [{"rows": "120k"}, {"dim": 32}, {"dtype": "fp16"}, {"optimizer": "sgd"}]
)
def test_other_tensors_need_a_restart(change: dict[str, Any]) -> None:
    """A reshard copies tensors as they are: a table that grew or has another type is told."""
    document = model((8, 2, 3, 1)).to_dict()
    document["tables"][0] |= change
    with pytest.raises(BadInput, match="t0 has other rows, columns, dtype or optimizer"):
        plan(Model.from_dict(document), cluster(2), start=first(), executable="torchrec")


def test_other_ranks_need_a_restart() -> None:
    """The number of ranks stays, nothing is quantised, and there is one sharding group."""
    given, before = model((8, 2, 3, 1)), first()
    with pytest.raises(BadInput, match="found 6 ranks, the running plan has 4"):
        plan(given, cluster(3), start=before, executable="torchrec")
    document = given.to_dict()
    document["workload"]["mode"] = "inference"
    with pytest.raises(BadInput, match="quantised modules have no reshard"):
        plan(Model.from_dict(document), cluster(2), start=before, executable="torchrec")
    divided = {"sharding_group_size": 2, "layout": "contiguous", "strategy": "default"}
    groups = Cluster.from_dict({**cluster(2).to_dict(), "two_d": divided})
    running = plan(given, groups, time_limit=5)
    with pytest.raises(BadInput, match="a reshard knows one group"):
        plan(given, groups, start=running, executable="torchrec")
    with pytest.raises(BadInput, match="without their option or ranks"):
        plan(given, cluster(2), start=before, lost=[0], executable="torchrec")


def test_unknown_runtimes_and_no_plan_to_start_from() -> None:
    """One sentence each."""
    with pytest.raises(BadInput, match="goes with start"):
        plan(model((1, 1)), cluster(1), executable="torchrec")
    with pytest.raises(BadInput, match="executable: found 'torch'"):
        plan(model((1, 1)), cluster(1), start=first(), executable="torch")


def test_modules_wait_for_room() -> None:
    """The module that frees memory goes before the one that needs it, and alone if it does not."""
    old = first(machines=1)
    instance, before = old.instance, old.outcome.placement
    assert before is not None
    start = Placement(before.options, list(before.ranks))
    for name, rank in ((0, 0), (2, 0), (3, 1)):
        start.ranks[name] = [np.array([rank])]
    end = Placement(before.options, list(start.ranks))
    end.ranks[0], end.ranks[3] = [np.array([1])], [np.array([0])]
    resources = []
    for resource in instance.resources:
        if resource.name.startswith("hbm"):
            one = int(instance.shard_use[:, instance.resources.index(resource)].max())
            # rank 0 starts with t0, t2 and a half of t1, rank 1 with t3 and the other half
            resource = replace(resource, capacity=np.array([3 * one, 3 * one]))
        resources.append(resource)
    small = replace(instance, resources=tuple(resources))
    order, left = in_order(small, start, end, {"a": [0], "b": [3]})
    assert order == ["a", "b"] and left == []


def test_models_and_clusters_from_objects_and_paths(tmp_path: Path) -> None:
    """Objects are neither copied nor read again, text and Path name a file; of a dictionary, one
    sentence says what is accepted."""
    here = cluster()
    assert to_model(MODEL) is MODEL and to_cluster(here) is here
    (tmp_path / "m.yaml").write_text(MODEL_TEXT)
    (tmp_path / "c.yaml").write_text(CLUSTER)
    assert to_model(str(tmp_path / "m.yaml")) == to_model(tmp_path / "m.yaml")
    assert to_cluster(tmp_path / "c.yaml").num_ranks == 2
    with pytest.raises(BadInput, match="must be a path or a Model, found dict"):
        to_model({})  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="must be a path or a Cluster, found Model"):
        to_cluster(MODEL)  # type: ignore[arg-type]
