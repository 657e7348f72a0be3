"""FBGEMM's shared caches: factors and widths that run instead of those of a plan."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from milp_planner.errors import FallsShort
from milp_planner.inputs.constraints import PinSpec
from milp_planner.integrations.replay.caches import padding, shared
from milp_planner.integrations.replay.judge import judge, pins_of
from milp_planner.plans.ledger import ledger_of
from milp_planner.plans.placement import Plan
from milp_planner.plans.warnings import cache_warnings
from tests.milp_planner.integrations.exports import plans

WHOLE = "table_wise/CACHING/0."


def together(hbm: str = "80GiB", ratios: tuple[int, int] = (3, 5), **narrow: Any) -> Plan:
    """Two cached tables of 3,000 and 1,000 rows on the first of two ranks."""
    tables = plans.static("a", 3000, **narrow), plans.static("b", 1000)
    choose = {name: f"{WHOLE}{ratio}" for name, ratio in zip("ab", ratios, strict=True)}
    found = (
        plans.plan_of(plans.model(*tables), choose, plans.cluster(1, 2, hbm), seed)
        for seed in range(50)
    )
    return next(plan for plan in found if [t.ranks for t in plan.tables] == [((0,),)] * 2)


def room(plan: Plan) -> int:
    """Bytes that a plan leaves on the first rank."""
    ledger = ledger_of(plan)
    assert ledger is not None
    return ledger.hbm[0].room


def test_a_kernel_has_the_mean_of_its_factors_by_rows() -> None:
    """(0.3 · 3,000 + 0.5 · 1,000)/4,000 = 0.35; the export says so, and is not exact."""
    judgement, ran = judge(together(), "torchrec")
    assert [t.cache_ratio for t in ran.tables] == [Fraction(35, 100)] * 2
    assert [(d.table, d.reason, d.runs) for d in judgement.differ] == [
        ("a", "ratio", "7/20"), ("b", "ratio", "7/20"),
    ]  # fmt: skip
    same, _ = judge(together(ratios=(4, 4)), "torchrec")
    assert same.exact


def test_plan_warns_of_other_factors() -> None:
    """``plan`` names the tables whose ratios their kernel does not keep, and no others."""
    (warning,) = cache_warnings(together())
    assert "a (0.3 becomes 0.35), b (0.5 becomes 0.35)" in warning
    assert cache_warnings(together(ratios=(4, 4))) == []


@pytest.mark.parametrize(("field", "value"), [("dtype", "fp16"), ("optimizer", "sgd")])
def test_other_kernels_have_caches_of_their_own(field: str, value: str) -> None:
    """Tables of another type or optimizer keep their factors."""
    judgement, _ = judge(together(**{field: value}), "torchrec")
    assert judgement.exact


def test_what_torchrec_itself_makes_of_the_factors() -> None:
    """``group_tables`` gives the one kernel of the rank the mean that we say."""
    sharding = pytest.importorskip("torchrec.distributed.embedding_sharding")
    types = pytest.importorskip("torchrec.distributed.embedding_types")
    configs = pytest.importorskip("torchrec.modules.embedding_configs")
    tables = [
        types.ShardedEmbeddingTable(
            num_embeddings=rows, embedding_dim=128, name=name, embedding_names=[name],
            feature_names=[name], data_type=configs.DataType.FP32, is_weighted=False,
            pooling=configs.PoolingType.SUM, local_rows=rows, local_cols=128,
            compute_kernel=types.EmbeddingComputeKernel.FUSED_UVM_CACHING,
            fused_params={"cache_load_factor": factor},
        )
        for name, rows, factor in (("a", 3000, 0.3), ("b", 1000, 0.5))
    ]  # fmt: skip
    [[group]] = sharding.group_tables([tables])
    pins, _ = shared(pins_of(together()), together().model)
    assert float(pins["a"].cache_ratio or 0) == pytest.approx(
        group.fused_params["cache_load_factor"]
    )


def test_shards_beside_different_tables_are_named() -> None:
    """Of a column-wise table each shard has the factor of its rank's kernel."""
    model = plans.model(*(plans.static(name, 1000, 256) for name in "abc"))

    def pin(ratio: str, *ranks: int) -> PinSpec:
        return PinSpec(
            mode="CACHING", sharding_type="column_wise", column_width=128,
            cache_ratio=Fraction(ratio), ranks=ranks,
        )  # fmt: skip

    pins = {"a": pin("0.3", 0, 1), "b": pin("0.5", 1, 2), "c": pin("0.5", 2, 3)}
    found, said = shared(pins, model)
    assert {name: each.cache_ratio for name, each in found.items()} == {
        "a": Fraction(3, 10), "b": Fraction(1, 2), "c": Fraction(1, 2),
    }  # fmt: skip
    assert "a (0.3 to 0.4), b (0.4 to 0.5)" in said[0]


def test_rows_are_as_wide_as_the_widest() -> None:
    """Half of 3,000 rows of 64 floats beside a table of 128: 64 more floats for each; refused
    where that is not left."""
    plan = together(ratios=(5, 5), dim=64)
    assert padding(plan) == {0: 1500 * 64 * 4}
    judgement, _ = judge(plan, "torchrec")
    assert "375.0 KiB more than planned on rank 0" in judgement.kept
    large, small = (room(together(f"{n}GiB", (5, 5), dim=64)) for n in (80, 40))
    tight = 40 * 2**30 - (small - 100_000) * 40 * 2**30 // (large - small)
    assert 0 < room(together(f"{tight}B", (5, 5), dim=64)) < 1500 * 64 * 4
    with pytest.raises(FallsShort, match=r"as its widest table: 375\.0 KiB more on rank 0"):
        judge(together(f"{tight}B", (5, 5), dim=64), "torchrec")
