"""Options and prices of HugeCTR's tables, by hand and against the planner's formula."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from formulations.instance import Where
from milp_planner.errors import BadInput
from milp_planner.inputs import Model
from milp_planner.plans.compile import compile_instance
from milp_planner.pricing import Options, price
from milp_planner.pricing.runtimes.hugectr import data_parallel
from tests.milp_planner.pricing.build import cluster, model, uneven_cluster

TABLE = {"kind": "hugectr", "optimizer": "sgd", "pooling_factor": 10}


def priced(*tables: dict[str, Any], machines: int = 1, ranks: int = 4, **more: Any) -> Options:
    """Options of HugeCTR's tables (a thousand rows of 64) with a ratio of 60."""
    return price(read(*tables, **more), cluster(machines, ranks))


def read(*tables: dict[str, Any], **more: Any) -> Model:
    """A model of HugeCTR's tables whose costs and bytes are its planner's."""
    workload = {"cost_model": "embark", "storage_model": "embark", "mem_comm_bw_ratio": 60} | more
    return model(*({**TABLE, **table} for table in tables), **workload)


def cost_of(options: Options, name: str) -> list[int]:
    """Lookup and exchange of a shard, in elements."""
    entry = int(options.entries.first[options.index(0, name)])
    assert not options.entries.cost[entry, 2:].any()
    return [int(each) for each in options.entries.cost[entry, :2]]


def test_every_cut_by_hand() -> None:
    """64 columns are halved once (32 is narrow enough), rows into as many parts as ranks are
    left."""
    names = ["table_wise", "column_wise:2", "row_wise", "grid_shard:r2c1", "grid_shard:r2c2"]
    options = priced({})
    assert list(options.names) == [f"{name}/HBM_ONLY" for name in names]
    samples = 512 * 4
    assert cost_of(options, names[0] + "/HBM_ONLY") == [samples * 4 * 10 * 64, samples * 60 * 64]
    assert cost_of(options, names[1] + "/HBM_ONLY") == [samples * 4 * 10 * 32, samples * 60 * 32]
    assert cost_of(options, names[2] + "/HBM_ONLY") == [samples * 4 * 10 * 16, samples * 60 * 64]
    assert cost_of(options, names[4] + "/HBM_ONLY") == [samples * 4 * 10 * 16, samples * 60 * 32]
    assert [int(b) for b in options.entries.hbm] == [256_000, 128_000, 64_000, 128_000, 64_000]


@pytest.mark.parametrize("machines", [1, 2, 3])
@pytest.mark.parametrize("dim", [16, 40, 128])
def test_every_price_is_the_planners(machines: int, dim: int) -> None:
    """B·(4·ids·columns/rows + ratio·columns); over machines 1.5 times the exchange, divided by
    ranks."""
    shape = {"dim": dim, "num_features": 2, "pooling_factor": 3.5, "optimizer": "adagrad"}
    for cost_model in ("embark", "embark_hierarchical"):
        options = priced(shape, machines=machines, cost_model=cost_model)
        size, times = (4, Fraction(3, 8)) if cost_model != "embark" else (1, Fraction(1))
        for index, choice in enumerate(options.choices):
            rows = choice.row_shards * size
            assert (choice.machine_ranks or 1) == size and dim == choice.columns * choice.width
            samples = 512 * 4 * machines
            lookup = Fraction(samples * 4 * 7 * choice.width, rows)
            exchange = samples * 2 * 60 * choice.width * times
            assert cost_of(options, options.names[index]) == [round(lookup), round(exchange)]
            entry = int(options.entries.first[index])
            assert options.entries.hbm[entry] == -(-1000 // rows) * choice.width * 8


def test_parts_lie_on_places_of_their_own() -> None:
    """A table's shards are on different ranks or whole machines, or on all of them."""
    for cost_model, size in (("embark", 1), ("embark_hierarchical", 2)):
        options = priced({"dim": 128}, machines=4, ranks=2, cost_model=cost_model)
        instance = compile_instance(options)
        for index, choice in enumerate(options.choices):
            block = instance.block(next(iter(instance.blocks_of(index))))
            parts = choice.row_shards * choice.columns
            if parts * size == 8:
                assert block.where == Where.EVERY_RANK
            else:
                assert (block.count, block.distinct or parts == 1) == (parts, True)
                assert block.where == (Where.ONE_MACHINE if size > 1 else Where.ANY_RANK)


def test_rows_on_all_ranks_even_if_these_are_no_power_of_two() -> None:
    """Six ranks allow 1, 2, 4 and 6 row parts."""
    options = priced({"dim": 16}, ranks=6)
    assert [c.row_shards for c in options.choices] == [1, 6, 2, 4]


def test_the_smallest_tables_are_data_parallel() -> None:
    """As many as the threshold says, at no cost; of equal ones, those with more ids."""
    tables = [{"rows": 50}, {"pooling_factor": 3}, {}, {"rows": 5000, "dim": 8}]
    assert data_parallel(read(*tables, dp_threshold=1)) == {"t0"}
    assert data_parallel(read(*tables, dp_threshold=2)) == {"t0", "t3"}
    assert data_parallel(read(*tables, dp_threshold=3)) == {"t0", "t3", "t2"}
    options = priced(*tables, dp_threshold=1)
    assert list(options.names[: options.first[1]]) == ["data_parallel/HBM_ONLY"]
    assert not options.entries.cost[0].any() and options.entries.hbm[0] == 50 * 64 * 4
    assert not any("data_parallel" in name for name in options.names[1:])


def test_data_parallel_where_asked() -> None:
    """Only constraints that ask for it make other tables data-parallel."""
    asked = priced({"constraints": {"sharding_types": ["data_parallel", "table_wise"]}})
    assert [name.partition("/")[0] for name in asked.names] == ["data_parallel", "table_wise"]


@pytest.mark.parametrize(
    ("constraints", "cost_model", "names"),
    [
        ({"ranks": [0, 3]}, "embark", ["table_wise", "column_wise:2", "grid_shard:r2c1"]),
        ({"column_widths": [64]}, "embark", ["table_wise", "row_wise", "grid_shard:r2c1"]),
        ({"pin": {"ranks": [3, 1]}}, "embark", ["column_wise:2", "grid_shard:r2c1"]),
        ({"pin": {"ranks": [2, 3]}}, "embark_hierarchical", ["grid_shard:r1c1"]),
        ({"ranks": [0, 2, 3]}, "embark_hierarchical", ["grid_shard:r1c1"]),
    ],
)
def test_constraints_are_kept(
    constraints: dict[str, Any], cost_model: str, names: list[str]
) -> None:
    """Ranks, pins and widths leave the cuts that fit them; only whole machines count."""
    options = priced({"constraints": constraints}, machines=2, ranks=2, cost_model=cost_model)
    assert [name.partition("/")[0] for name in options.names] == names
    instance, allowed = compile_instance(options), constraints.get("ranks") or [1, 3]
    for index in range(len(options)):
        block = instance.block(next(iter(instance.blocks_of(index))))
        if cost_model == "embark" and block.places is not None:
            assert sorted(block.places) == sorted(allowed)
        if cost_model != "embark":
            assert list(block.places or ()) == [1]


@pytest.mark.parametrize(
    ("table", "workload", "sentence"),
    [
        ({}, {"cost_model": "law"}, "cost_model: found law with tables of hugectr; allowed"),
        ({"kind": "torchrec"}, {}, "cost_model: found embark; allowed with tables of kind"),
        ({"kind": "torchrec"}, {"cost_model": "law"}, "storage_model: found embark; allowed"),
        ({"output": "sequence", "pooling_factor": None}, {}, "allowed with kind: hugectr: pooled"),
        ({"constraints": {"modes": "CACHING"}}, {}, "tables of hugectr are HBM_ONLY"),
        ({"admission_capacity": 9}, {}, "this table is hugectr"),
    ],
)
def test_what_does_not_go_together(
    table: dict[str, Any], workload: dict[str, Any], sentence: str
) -> None:
    """HugeCTR's tables need its planner's prices, pooled output and HBM; other tables cannot have
    those prices."""
    with pytest.raises(BadInput, match=sentence):
        read(table, **workload)


def test_no_place() -> None:
    """Hierarchical parts need machines of equal size; the sentence says so."""
    with pytest.raises(BadInput, match="machines of equal size"):
        price(read({}, cost_model="embark_hierarchical"), uneven_cluster())
