"""HugeCTR's plans: by hand, there and back, and as today's plan."""

from __future__ import annotations

import json
import random
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formulations import check, read_instance
from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from milp_planner.integrations import exports
from milp_planner.plans.compile import compile_instance
from milp_planner.plans.placement import Plan
from milp_planner.pricing import price
from milp_planner.today.matching import compile_today
from tests.milp_planner.pricing.build import cluster

from . import plans

EMBARK = ["embark", "embark_hierarchical"]
SIZES = ((1000, 128), (20, 16), (999, 64), (5000, 40))


def model(cost_model: str = "embark", small: int = 0, sizes: Any = SIZES) -> Model:
    """Tables a, b, c, …, some of them data-parallel."""
    tables = [
        {"name": chr(97 + i), "rows": rows, "dim": dim, "kind": "hugectr", "optimizer": "sgd"}
        for i, (rows, dim) in enumerate(sizes)
    ]
    workload = {"batch_per_rank": 64, "cost_model": cost_model, "storage_model": "embark"}
    return Model.from_dict({"name": "m", "workload": {**workload, "dp_threshold": small},
                            "tables": tables})  # fmt: skip


def random_plan(seed: int, planned: Model, on: Cluster) -> Plan:
    """A plan with random options and ranks."""
    draw, options = random.Random(seed), price(planned, on)
    first = options.first
    names = [options.names[draw.randrange(int(a), int(b))] for a, b in pairwise(first)]
    chosen = dict(zip((table.name for table in planned.tables), names, strict=True))
    return plans.plan_of(planned, chosen, on, seed)


def test_by_hand() -> None:
    """NVIDIA's example: a data-parallel, b on rank 0, c in two row parts, d in two column parts."""
    sizes = ((1, 1), (100, 64), (100, 64), (100, 64))
    names = {"b": "table_wise", "c": "row_wise", "d": "column_wise:2"}
    chosen = {table: f"{name}/HBM_ONLY" for table, name in names.items()}
    planned = model(small=1, sizes=sizes)
    pinned = exports.with_pins(planned, {"b": exports.pin("b", ranks=(0,))})
    plan = plans.plan_of(pinned, chosen, plans.cluster(1, 2))
    document = json.loads(exports.write(plan, "hugectr"))
    assert document["shard_matrix"] == [["a", "b", "c", "d"], ["a", "c", "d"]]
    mp = [["b", 1], ["c", 1], ["d", 2]]
    assert document["shard_strategy"] == [["dp", ["a"]], ["mp", mp]]
    assert document["compression_strategy"] == {"Unique": [], "Reduction": ["b", "c", "d"]}
    assert [(s.rank, s.rows, s.columns) for s in plan.shards("d")] == [
        (0, (0, 100), (0, 32)), (1, (0, 100), (32, 64)),
    ]  # fmt: skip
    assert [(s.rank, s.rows, s.columns) for s in plan.shards("c")] == [
        (0, None, (0, 64)), (1, None, (0, 64)),
    ]  # fmt: skip


@pytest.mark.parametrize("cost_model", EMBARK)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10_000))
def test_there_and_back(cost_model: str, seed: int) -> None:
    """A plan that is read back has the same placement on the same Instance at the same cost."""
    planned, on = model(cost_model, seed % 3), cluster(3, 2)
    plan = random_plan(seed, planned, on)
    pins = exports.read(exports.write(plan, "hugectr"), "hugectr", planned)
    compiled, today = compile_today(pins, planned, on, plan.instance.objective)
    assert plan.verdict is not None and plan.outcome.placement is not None
    assert check(compiled.instance, today).objectives == plan.verdict.objectives
    before = [set(chain(*plan.outcome.placement.to_lists(t))) for t in range(len(SIZES))]
    assert [set(chain(*today.to_lists(t))) for t in range(len(SIZES))] == before
    named = [compiled.instance.option_names[o] for o in today.options]
    assert named == [table.option for table in plan.tables]


def test_tables_by_their_place_and_unique_ones() -> None:
    """HugeCTR's own scripts name tables 0, 1, …; `Unique` tables are reported and not pinned."""
    document = {
        "shard_matrix": [["0", "1"], ["0"], ["2", "3"], ["2"]],
        "shard_strategy": [["mp", ["1", ["0", 2], "2", ["3", 1]]]],
        "compression_strategy": {"Unique": ["3"], "Reduction": ["0", "1", "2"]},
    }
    pins = exports.read(json.dumps(document), "hugectr", model())
    found = {name: (p.sharding_type, p.column_width, p.ranks) for name, p in pins.items()}
    assert found == {
        "b": ("table_wise", None, (0,)), "a": ("column_wise", 64, (0, 1)),
        "c": ("grid_shard", None, (2, 3)), "d": ("table_wise", None, (2,)),
    }  # fmt: skip
    assert "1 tables are compressed by Unique" in exports.unread(json.dumps(document), "hugectr")[0]


def test_today_may_be_data_parallel_without_a_threshold() -> None:
    """A table that today's plan replicates gets that option, at no cost, as in HugeCTR."""
    held = [["a", "b"], ["b"]]
    document = {"shard_matrix": held, "shard_strategy": [["dp", ["b"]], ["mp", [["a", 1]]]]}
    planned = model(sizes=SIZES[:2])
    pins = exports.read(json.dumps(document), "hugectr", planned)
    compiled, today = compile_today(pins, planned, plans.cluster(1, 2), "busiest_rank")
    cost = 64 * 2 * (4 + 80) * 128
    assert check(compiled.instance, today).objectives["busiest_rank"] == cost


def text(**changes: Any) -> str:
    """A plan of two tables on two ranks with some fields changed."""
    plain = {"shard_matrix": [["a", "b"], ["a"]], "shard_strategy": [["mp", ["a", ["b", 1]]]]}
    return json.dumps({**plain, **changes})


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("[]", "must hold shard_matrix"),
        (text(shard_matrix={}), "shard_matrix must be a list"),
        (text(shard_matrix=["a"]), r"shard_matrix\[0\]: must be a list"),
        (text(shard_matrix=[["a", "a"], []]), "'a' is listed twice"),
        (text(shard_matrix=[["a"], ["bb"]]), "did you mean b"),
        (text(shard_matrix=[["a"], ["7"]]), "unknown table '7'"),
        (text(shard_matrix=[["a"], []]), "1 column parts; allowed: a divisor of its 0 ranks"),
        (text(shard_strategy=[["mp", ["b"]]]), "table 'a' is in no group"),
        (text(shard_strategy=[["mp", ["a", "b", "0"]]]), "'a' is listed twice"),
        (text(shard_strategy=[["pp", ["a"]]]), "allowed: dp, mp"),
        (text(shard_strategy=[["mp", [["a", 0], "b"]]]), "a table, or a table and its columns"),
        (text(shard_strategy=[["mp", [["a", 2], ["b", 3]]]]), "3 column parts"),
        (text(shard_strategy=[["dp", ["b"]], ["mp", ["a"]]]), "allowed: all 2 ranks"),
        (text(shard_strategy=["mp"]), "a pair of a group and its tables"),
        (text(compression_strategy={"Unique": 1}), "lists of tables"),
    ],
)
def test_what_hugectr_refuses(given: str, sentence: str) -> None:
    """One sentence says where, what was found and what is allowed."""
    with pytest.raises(BadInput, match=sentence):
        exports.read(given, "hugectr", model(sizes=SIZES[:2]))


def test_formats_and_tables_go_together() -> None:
    """HugeCTR's tables have no other export, and its export takes no other tables."""
    with pytest.raises(BadInput, match="of hugectr: the format torchrec"):
        exports.write(random_plan(1, model(), plans.cluster()), "torchrec")
    with pytest.raises(BadInput, match="of torchrec: the format hugectr"):
        exports.write(plans.random_plan(1, plans.static("a")), "hugectr")


@pytest.mark.parametrize("name", ["180table_70B_hotness80_2x8", "200table_100B_hotness20_1x8",
                                  "510table_110B_hotness5_2x8", "7table_470B_hotness20_8x8",
                                  "dcnv2_8x8"])  # fmt: skip
def test_nvidias_plans_cost_what_nvidia_says(shared_data: Path, name: str) -> None:
    """Its five plans, read as HugeCTR's values, cost exactly what its planner printed.

    The Instance priced from the table list is the published one: every option, cost and place.
    """
    from benchmarks.embark import lists

    planned, on = lists.published(shared_data, name)
    theirs = read_instance(shared_data / "embark" / f"{name}.json.gz")
    ours = compile_instance(price(planned, on), "busiest_rank")
    for table in range(theirs.num_tables):
        assert lists.facts(ours, table) == lists.facts(theirs, table)
    stored = lists.stored_plan(shared_data, name)
    pins = exports.read(json.dumps(stored.values), "hugectr", planned)
    compiled, today = compile_today(pins, planned, on, "busiest_rank")
    found = check(compiled.instance, today)
    assert found.feasible and found.objectives["busiest_rank"] == stored.cost
