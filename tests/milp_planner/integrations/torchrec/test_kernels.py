"""Kernels with rows beyond host memory, and plans for one sharding group of 2D parallelism.

Bytes of key-value and virtual tables in the drop-in, by hand and against TorchRec's.

Further column widths and cache load factors.
"""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore
from torchrec.distributed.embedding import EmbeddingCollectionSharder
from torchrec.distributed.model_parallel import DMPCollection
from torchrec.distributed.planner.types import ParameterConstraints, Topology
from torchrec.distributed.types import KeyValueParams
from torchrec.modules.embedding_configs import EmbeddingConfig
from torchrec.modules.embedding_modules import EmbeddingCollection

from milp_planner.errors import BadInput
from milp_planner.integrations.torchrec import MilpShardingPlanner, NoPlan
from milp_planner.integrations.torchrec.lift import Lift, lift
from milp_planner.integrations.torchrec.problem import compile_problem

from .models import META, Case, bag_sharders, bags, planned_for, planner_for, topology


def _case_of(
    board: Topology, batch: int, limits: ParameterConstraints, rows: dict[str, int], **more: Any
) -> Case:
    """Sequences of 64 columns, the first table with these constraints and fields."""
    names = list(rows)
    tables = [
        EmbeddingConfig(
            name=name, num_embeddings=count, embedding_dim=64, feature_names=[f"f_{name}"],
            **(more if name == names[0] else {}),
        )
        for name, count in rows.items()
    ]  # fmt: skip
    module = EmbeddingCollection(device=META, tables=tables)
    return Case(module, board, {names[0]: limits}, batch, sharders=[EmbeddingCollectionSharder()])


@pytest.mark.parametrize(
    "kernel", ["key_value", "ssd_virtual_table", "dram_virtual_table", "dram_ssd_virtual_table"]
)
def test_kernels_beyond_host_memory(kernel: str) -> None:
    """Key-value and virtual tables are planned beside ordinary ones and keep their parameters."""
    virtual = {"use_virtual_table": True, "total_num_buckets": 40} if "virtual" in kernel else {}
    limits = ParameterConstraints(
        compute_kernels=[kernel],
        key_value_params=KeyValueParams(l2_cache_size=3),
        use_virtual_table=bool(virtual),
    )
    case = _case_of(topology(4, 2), 64, limits, {"kept": 4000, "plain": 3000}, **virtual)
    planner = planner_for(case)
    table = planner.plan(case.module, case.sharders).plan[""]["kept"]
    assert (table.sharding_type, table.compute_kernel) == ("row_wise", kernel)
    assert table.ranks == [0, 1, 2, 3]
    assert table.key_value_params is not None and table.key_value_params.l2_cache_size == 3
    assert planner.outcome is not None and planner.outcome.gap == 0


def test_ssd_is_a_limit() -> None:
    """If no rank's SSD holds a key-value table, there is no plan, and SSD is the shortage."""
    limits = ParameterConstraints(compute_kernels=["key_value"])
    case = _case_of(topology(2, ssd_cap=2**20), 16, limits, {"big": 40_000})
    with pytest.raises(NoPlan, match="SSD") as caught:
        planner_for(case).plan(case.module, case.sharders)
    assert caught.value.shortfalls[-1].tier == "ssd"


def test_a_cap_on_a_key_value_cache_is_read() -> None:
    """``max_l1_cache_size`` (MiB) caps the cache on every rank, plus 16 bytes per slot."""
    used = []
    for megabytes in (0, 1):
        limit = ParameterConstraints(
            compute_kernels=["key_value"],
            key_value_params=KeyValueParams(max_l1_cache_size=megabytes),
        )
        case = _case_of(topology(2), 16, limit, {"big": 400_000})
        planner = planned_for(case)
        [option] = planner.best_plan
        used.append(option.shards[0].storage.hbm)
    assert used[1] - used[0] == 2**20 + 16 * 2**20 // 256


@pytest.fixture
def four_ranks() -> Iterator[None]:
    """A process group of four that only tells TorchRec where its ranks are."""
    dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("rank", range(4))
def test_plan_of_a_sharding_group_becomes_every_groups(rank: int, four_ranks: None) -> None:
    """2D: TorchRec maps the plan of one group's ranks onto each group of the world.

    Two hosts of two ranks, groups of two: {0, 2} and {1, 3}, each with one rank on either host.
    """
    case = Case(bags([(40_000, 64), (50_000, 64), (90_000, 64)]), topology(2, 1), batch_size=64)
    plan = planner_for(case).plan(case.module, case.sharders)
    before = {name: table.ranks for name, table in plan.plan[""].items()}
    collection: Any = SimpleNamespace(_device=SimpleNamespace(type="cuda"))  # all it looks at
    DMPCollection._remap_sharding_plan(collection, plan, rank, step=2, sharding_group_size=2)
    group = [rank % 2, rank % 2 + 2]
    for name, table in plan.plan[""].items():
        assert table.ranks == [group[r] for r in before[name] or ()]
    used = {r for table in plan.plan[""].values() for r in table.ranks or ()}
    assert used == set(group)


ROWS, DIM = 1_000_000, 128
GIB = 2**30


def stored(kernel: str, key_value: Any = "runtime", **params: Any) -> dict[str, int]:
    """HBM, DDR and SSD of a table-wise table's one shard, in the compiled instance."""
    limits = {
        "t0": ParameterConstraints(
            sharding_types=["table_wise"],
            compute_kernels=[kernel],
            key_value_params=KeyValueParams(**params),
            use_virtual_table="virtual" in kernel,
        )
    }
    planner = MilpShardingPlanner(
        topology=topology(2, hbm=16 * GIB, ddr=16 * GIB),
        batch_size=64,
        constraints=limits,
        key_value=key_value,
    )
    problem = planner.prepare(bags([(ROWS, DIM)]), bag_sharders())
    use = problem.instance.shard_use[0].tolist()
    names = (resource.name for resource in problem.instance.resources)
    return {"ssd": 0} | dict(zip(names, use, strict=True))


@pytest.mark.parametrize("cap", [None, 50])
def test_a_cache_without_a_cap_is_charged(cap: int | None) -> None:
    """TorchRec counts 0 bytes without L1, and the cap with it; the kernel takes a fifth of the
    rows, or less."""
    kernel, slots = "key_value", 200_000 if cap is None else 50 * 2**20 // (32 * 512) * 32
    ours = stored(kernel, max_l1_cache_size=cap, l2_cache_size=3)
    theirs = stored(kernel, "torchrec", max_l1_cache_size=cap, l2_cache_size=3)
    counted = 0 if cap is None else cap * 2**20
    assert ours["hbm"] - theirs["hbm"] == slots * (512 + 16) + 4 * ROWS - counted
    assert (theirs["ddr"], ours["ddr"]) == (0, 2 * slots * (512 + 12) + 5 * GIB)
    assert ours["ssd"] == ROWS * (512 + 8) != theirs["ssd"]


@pytest.mark.parametrize("kernel", ["ssd_virtual_table", "dram_virtual_table"])
def test_virtual_tables_are_charged_for_their_rows(kernel: str) -> None:
    """TorchRec charges them nothing; here rows are on SSD, or in host memory with 32 bytes each."""
    ours, theirs = stored(kernel), stored(kernel, "torchrec")
    assert theirs["ddr"] == theirs["ssd"] == 0
    evicted = 2 * 200_000 * (512 + 12)
    on_ssd = kernel.startswith("ssd")
    assert ours["ssd"] == (ROWS * (512 + 8) if on_ssd else 0)
    assert ours["ddr"] == evicted + (2 * GIB if on_ssd else ROWS * (512 + 32))


def test_only_two_counts_are_known() -> None:
    """Another name is refused with the nearest one."""
    with pytest.raises(BadInput, match="key_value"):
        stored("key_value", "runtimes")


def _names(case: Case, limits: Lift) -> list[str]:
    enumerator = case.enumerator()
    space = enumerator.enumerate(case.module, case.sharders)
    lifted = lift(space, limits, case.topology, enumerator, case.constraints)
    assert lifted[: len(space)] == space
    return list(compile_problem(lifted, case.reserved()).instance.option_names)


def _case(**constraint: object) -> Case:
    limits = {"t0": ParameterConstraints(**constraint)}  # type: ignore[arg-type]
    return Case(bags([(5000, 256)]), topology(4, 2), limits)


def test_widths_that_divide() -> None:
    """Widths are divisors in multiples of 4; the whole dim is table-wise and not among them."""
    assert Lift("all").widths(256) == [32, 64, 128]
    assert Lift("all").widths(192) == [32, 48, 64, 96]
    assert Lift([64, 128, 100]).widths(256, least=100) == [128]
    assert Lift().widths(256) == []


CACHED = "row_wise/fused_uvm_caching"


@pytest.mark.parametrize(
    ("kind", "kernels", "more", "limits", "names"),
    [
        ("column_wise", ["fused"], {}, Lift("all"), [f"column_wise:{n}/fused" for n in (2, 4, 8)]),
        ("column_wise", ["fused"], {"min_partition": 64}, Lift("all"),
         ["column_wise:2/fused", "column_wise:4/fused"]),
        ("row_wise", ["fused", "fused_uvm_caching"], {}, Lift(load_factors=[0.1, 0.4]),
         ["row_wise/fused", CACHED, f"{CACHED}/0.1", f"{CACHED}/0.4"]),
    ],
)  # fmt: skip
def test_every_width_and_load_factor_becomes_an_option(
    kind: str, kernels: list[str], more: dict[str, Any], limits: Lift, names: list[str]
) -> None:
    """A table's ``min_partition`` stays its narrowest width; load factors multiply only the caching
    options, and TorchRec's own stays among them."""
    case = _case(sharding_types=[kind], compute_kernels=kernels, **more)
    assert _names(case, limits) == names


def test_extra_options_are_priced_by_the_enumerator() -> None:
    """An added option costs what TorchRec charges for that width if a constraint sets it."""
    kind = {"sharding_types": ["column_wise"], "compute_kernels": ["fused"]}
    lifted = _case(**kind)
    enumerator = lifted.enumerator()
    space = enumerator.enumerate(lifted.module, lifted.sharders)
    space = lift(space, Lift([64]), lifted.topology, enumerator)
    set_by_hand = _case(**kind, min_partition=64).problem().instance
    found = compile_problem(space, lifted.reserved()).instance
    option = found.option_index(0, "column_wise:4/fused")
    entry = found.block(found.blocks_of(option)[0]).entry(0)
    expected = set_by_hand.block(0).entry(0)
    assert found.shard_cost[entry].tolist() == set_by_hand.shard_cost[expected].tolist()
    assert found.shard_use[entry].tolist() == set_by_hand.shard_use[expected].tolist()


@pytest.mark.parametrize(
    ("widths", "factors"), [("some", []), ([30], []), ([0], []), ([], [1.0]), ([], [0.0])]
)
def test_illegal_limits(widths: object, factors: list[float]) -> None:
    """Widths and load factors that TorchRec cannot run are refused."""
    with pytest.raises(BadInput, match="allowed"):
        Lift(widths, factors)  # type: ignore[arg-type]


def test_a_cap_in_bytes_is_a_load_factor() -> None:
    """Bytes over the table's bytes; caps not below the table, or below 1, are no load factors."""
    limits = Lift(load_factors=[0.5], cache_bytes=[2**20, 2**30])
    assert limits.factors(2**22) == [0.5, 0.25]
    assert limits.factors(2**32) == [0.5, 2**-12, 0.25]
    with pytest.raises(BadInput, match="cache_bytes"):
        Lift(cache_bytes=[0])
