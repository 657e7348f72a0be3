"""Prices by a step model: against its formulas, a replayed cache, and between optimizers."""

from collections import OrderedDict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from milp_planner.features.calibrate.steps import FITTED, StepSpec, StepTable, draw_ids, draw_steps
from milp_planner.pricing.options import Options
from milp_planner.pricing.popularity import uniform, zipf
from milp_planner.pricing.price import price
from milp_planner.pricing.profile import Profile, load_profile
from milp_planner.pricing.step import Stream, cache_hits
from milp_planner.pricing.step_model import BatchTerms, StepModel, TableTerms
from tests.milp_planner.features.calibrate.fake import GPU, TRUTH, table_seconds
from tests.milp_planner.pricing.build import cluster, model

PS = 1e-12
CPU = cluster(1, 1, hbm=0)


def profile_with(step: StepModel | None) -> Profile:
    """TorchRec's numbers with this model of a step."""
    return load_profile("torchrec-default").model_copy(update={"step": step})


def table_of(table: StepTable, optimizer: str, **more: Any) -> dict[str, Any]:
    """The table as in a model file, whole on one rank."""
    access = {"kind": "zipf", "alpha": table.alpha} if table.alpha else "unknown"
    return {
        "rows": table.rows, "dim": table.dim, "pooling_factor": table.pooling,
        "optimizer": optimizer, "access": access,
        "constraints": {"sharding_types": "table_wise"}, **more,
    }  # fmt: skip


def priced(spec: StepSpec, step: StepModel | None = TRUTH, **more: Any) -> Options:
    """A step's tables on a machine without HBM, one option each."""
    tables = [table_of(table, spec.optimizer, **more) for table in spec.tables]
    return price(model(*tables, batch_per_rank=spec.batch), CPU, profile_with(step))


@pytest.mark.parametrize(
    "spec", draw_steps(FITTED, 12, most=2**22, moved=2**20), ids=lambda s: s.name
)
def test_prices_are_what_the_terms_say(spec: StepSpec) -> None:
    """Forward and backward of all tables sum to the terms' formulas, by hand."""
    cost = priced(spec).entries.cost
    lookup, update = table_seconds(TRUTH, spec, once=False)
    assert len(cost) == len(spec.tables)
    assert cost[:, 0].sum() * PS == pytest.approx(lookup, rel=1e-6)
    assert cost[:, 2].sum() * PS == pytest.approx(update, rel=1e-6)


@pytest.mark.parametrize(
    "spec",
    draw_steps(replace(FITTED, batches=(256, 65536)), 12, most=2**22, moved=2**27),
    ids=lambda s: s.name,
)
def test_a_device_works_beside_the_dispatch(spec: StepSpec) -> None:
    """A table costs the longer of dispatch and work, with the gradients of its hottest row one
    after another; by hand."""
    cost = priced(spec, GPU.model_copy(update={"tier": "ddr"})).entries.cost
    lookup, update = table_seconds(GPU, spec, once=False)
    assert cost[:, 0].sum() * PS == pytest.approx(lookup, rel=1e-6)
    assert cost[:, 2].sum() * PS == pytest.approx(update, rel=1e-6)


SPEC = StepSpec((StepTable(100_000, 64, 4, 1.05),), 2048, "adam")


def test_an_optimizer_that_was_not_measured_lies_between() -> None:
    """Adagrad keeps one copy of a row: halfway from row-wise Adagrad's 1/64 to Adam's two."""
    spec = StepSpec(SPEC.tables, SPEC.batch, "adagrad")
    (cost,) = priced(spec).entries.cost[:, 2].tolist()
    parts = []
    for name in ("rowwise_adagrad", "adam"):  # Adagrad's working set, each optimizer's terms
        alone = TRUTH.model_copy(update={"update": {name: TRUTH.update[name]}})  # type: ignore[index]
        parts.append(float(priced(spec, alone).entries.cost[0, 2]))
    share = (1 - 1 / 64) / (2 - 1 / 64)
    assert cost == pytest.approx(parts[0] + share * (parts[1] - parts[0]), rel=1e-6)
    assert parts[0] < cost < parts[1]


def test_sgd_stands_for_none_alone() -> None:
    """A table without an optimizer gets SGD's price; unmeasured row-wise Adagrad gets Adam's, not
    SGD's."""
    without = StepSpec(SPEC.tables, SPEC.batch, "none")
    sgd = StepSpec(SPEC.tables, SPEC.batch, "sgd")
    assert priced(without).entries.cost[0, 2] == priced(sgd).entries.cost[0, 2]
    two = TRUTH.model_copy(
        update={"update": {k: v for k, v in TRUTH.update.items() if k != "rowwise_adagrad"}}
    )
    rowwise = StepSpec(SPEC.tables, SPEC.batch, "rowwise_adagrad")
    only = TRUTH.model_copy(update={"update": {"adam": TRUTH.update["adam"]}})
    assert priced(rowwise, two).entries.cost[0, 2] == priced(rowwise, only).entries.cost[0, 2]


def test_other_tables_push_rows_out_of_the_cache() -> None:
    """A table costs more beside another one, and two equal tables cost the same."""
    alone = priced(SPEC).entries.cost[0, 0]
    beside = priced(StepSpec(SPEC.tables * 2, SPEC.batch, "adam")).entries.cost[:, 0]
    assert beside[0] == beside[1] > alone


def test_what_was_not_measured_keeps_its_price() -> None:
    """Replicated tables are priced as without a step model, as is all that is not in HBM on GPUs,
    unless a table in HBM costs more."""
    given = model(table_of(SPEC.tables[0], "adam", constraints={}), batch_per_rank=256)
    gpu, cpus = TRUTH.model_copy(update={"tier": "hbm"}), cluster(1, 2, hbm=0)
    for where, step in ((cpus, TRUTH), (cluster(1, 2), gpu), (cpus, gpu)):
        plain, found = (price(given, where, profile_with(each)) for each in (None, step))
        before, after = (each.entries.cost[:, [0, 2]] for each in (plain, found))
        option = np.repeat(np.arange(len(found)), np.diff(found.entries.first))
        here = step.tier == ("ddr" if where.cpu_only else "hbm")
        for index, old, new in zip(option.tolist(), before.tolist(), after.tolist(), strict=True):
            choice = found.choices[index]
            mode = "HOST_ONLY" if where.cpu_only else "HBM_ONLY"
            if not here or choice.sharding == "data_parallel":
                assert new == old
            elif choice.mode == mode:
                assert new != old
            else:
                assert new[0] >= old[0] and new[1] >= old[1]


def test_inference_has_no_update() -> None:
    """Only forward; without optimizer state more rows fit the cache."""
    given = model(table_of(SPEC.tables[0], "adam"), batch_per_rank=2048, mode="inference")
    cost = price(given, CPU, profile_with(TRUTH)).entries.cost
    assert cost[0, 2] == 0
    assert 0 < cost[0, 0] < priced(SPEC).entries.cost[0, 0]


def replayed(tables: tuple[StepTable, ...], batch: int, size: int) -> list[float]:
    """Hit ratios of one LRU cache in bytes under the steps' ids, in the second half of 60 steps."""
    generator, cache, used = np.random.default_rng(0), OrderedDict[tuple[int, int], int](), 0
    hits, asked = np.zeros(len(tables)), np.zeros(len(tables))
    for step in range(60):
        for index, table in enumerate(tables):
            for row in draw_ids(table, batch * table.pooling, generator).tolist():
                key = (index, row)
                if found := key in cache:
                    cache.move_to_end(key)
                else:
                    cache[key] = table.dim * 4
                    used += table.dim * 4
                    while used > size:
                        used -= cache.popitem(last=False)[1]
                if step >= 30:
                    hits[index] += found
                    asked[index] += 1
    return (hits / asked).tolist()


def test_a_shared_cache_serves_what_a_replay_finds() -> None:
    """Two tables of different rows, widths and skews in one cache are within 0.03 of LRU."""
    tables = (StepTable(2_000, 16, 2, 0.9), StepTable(5_000, 8, 1, 0.0))
    streams = [Stream(zipf(2_000, 0.9), 600.0, 64.0), Stream(uniform(5_000), 300.0, 32.0)]
    for size in (2**13, 2**15, 2**17):
        found = cache_hits(streams, np.array([float(size)]))[:, 0]
        assert found == pytest.approx(replayed(tables, 300, size), abs=0.03)


def test_everything_is_served_where_all_rows_fit() -> None:
    """A cache of exactly all rows misses nothing, and a larger cache never serves less."""
    streams = [Stream(zipf(1_000, 1.0), 100.0, 64.0), Stream(uniform(500), 50.0, 32.0)]
    sizes = np.array([1e2, 1e3, 1e4, 1_000 * 64 + 500 * 32, 1e9])
    found = cache_hits(streams, sizes)
    assert found[:, -2:] == pytest.approx(1.0, abs=1e-6)
    assert (np.diff(found, axis=1) >= -1e-9).all()
    assert (found >= 0).all()
    idle = [Stream(uniform(500), 0.0, 32.0)]
    assert cache_hits(idle, sizes).tolist() == [[1.0] * 5]


def test_a_batch_costs_its_terms() -> None:
    """10 samples of 2 tables with 6 columns: 240 joined bytes, 140 beyond the cache."""
    terms = BatchTerms(
        seconds=1.0, table_seconds=2.0, sample_seconds=3.0, column_seconds=4.0, spilled=(100, 5.0)
    )
    assert terms.of(10, 2, 6) == 1 + 2 * 2 + 10 * (3 + 6 * 4) + 140 * 5
    assert terms.of(1, 2, 6) == 1 + 4 + 3 + 24


def test_knees_come_by_rising_size() -> None:
    """A repeated size, or a smaller one after a larger, is refused."""
    with pytest.raises(ValueError, match="missed must be sorted by rising size"):
        TableTerms(missed=((2.0, 1.0), (2.0, 1.0)))


def test_fbgemms_terms_price_torchrecs_tables_and_not_dynamicembs() -> None:
    """With FBGEMM's measured step a TorchRec table in HBM costs something else, dynamicemb's what
    it costs without; and no cache is faster than HBM."""

    def costs(kind: str, profile: str) -> dict[str, list[int]]:
        table = {"rows": 10**6, "pooling_factor": 20, "kind": kind, "optimizer": "adam",
                 "access": {"kind": "zipf", "alpha": 1.05}}  # fmt: skip
        given = model(table, batch_per_rank=8192)
        options = price(given, cluster(1, 1), load_profile(profile))
        rows = options.entries.cost[:, [0, 2]].tolist()
        return {c.name: row for c, row in zip(options.choices, rows, strict=False)}

    plain, fused = costs("dynamicemb", "h100"), costs("dynamicemb", "h100-fbgemm")
    assert plain == fused
    fused, hbm = costs("torchrec", "h100-fbgemm"), "table_wise/HBM_ONLY"
    assert fused[hbm] != costs("torchrec", "h100")[hbm]
    behind = [name for name in fused if "CACHING" in name or "HOST_ONLY" in name]
    assert len(behind) > 5
    for name in behind:
        assert all(a <= b for a, b in zip(fused[hbm], fused[name], strict=True))
