"""Generated models are reproducible and have the announced shape.

The literature's tables and tasks: those that were published, and what is made of them.
"""

import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from milp_planner.errors import BadInput
from milp_planner.inputs import Model
from milp_planner.inputs.table import Table
from milp_planner.pricing import price
from milp_planner.pricing.popularity import distinct_rows
from scenarios.catalog import find_cluster, find_model
from scenarios.generator import DIMS, KINDS, LEAST_ROWS, MOST_ROWS, generate
from scenarios.literature import SAMPLES
from tests.corpus import mistakes

FIRST_OF_SEED_0 = (602, 64, 5.766174)
"""Values from random.Random(0), 0.84442 and 0.75795: table 722 of the 856, the fifth dim."""


def test_same_seed_same_model() -> None:
    """The seed alone decides, now as when the generator was written."""
    assert generate(50, 1).fingerprint() == generate(50, 1).fingerprint()
    assert generate(50, 1).tables != generate(50, 2).tables
    first = generate(1, 0).tables[0]
    assert (first.rows, first.dim, first.pooling_factor) == FIRST_OF_SEED_0
    assert first.access == find_model("dlrm-856").tables[722].access


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 2**40), st.sampled_from(KINDS))
def test_smaller_models_are_prefixes(few: int, more: int, seed: int, kind: str) -> None:
    """The first n tables of a larger model are the model of n tables."""
    assert generate(few, seed, kind).tables == generate(few + more, seed, kind).tables[:few]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**40), st.sampled_from(KINDS), st.integers(10**4, 10**10))
def test_ranges(seed: int, kind: str, max_rows: int) -> None:
    """Every table is within the announced ranges and has the announced kind."""
    for table in generate(20, seed, kind, max_rows=max_rows).tables:
        assert LEAST_ROWS <= table.rows <= max_rows
        assert table.dim in DIMS
        assert kind in ("mixed", table.kind)
        assert table.output == "pooled" or table.kind == "dynamicemb"


@cache
def drawn() -> tuple[Table, ...]:
    """5,000 generated tables."""
    return generate(5000, 3, "mixed").tables


def hottest(table: Table) -> float:
    """How many times as often as the average row the most popular ones are looked up."""
    bins = getattr(table.access, "bins", ())
    return max((mass / share for share, mass in bins), default=1.0)


@pytest.mark.parametrize("measure", [lambda t: t.rows, lambda t: t.lookups_per_sample, hottest])
def test_quantiles_are_those_of_the_856_tables(measure: Callable[[Table], float]) -> None:
    """Rows, ids a sample and skew: each value is as frequent as there, within 0.028, which 5,000
    draws of one distribution exceed once in 1,000 times (Kolmogorov and Smirnov)."""
    found = np.sort([measure(table) for table in drawn()])
    theirs = np.sort([measure(table) for table in find_model("dlrm-856").tables])
    assert theirs[0] < theirs[len(theirs) // 2] < theirs[-1]
    for side in ("left", "right"):
        values = np.unique(theirs)
        shares = (np.searchsorted(each, values, side) / len(each) for each in (found, theirs))
        assert np.abs(np.subtract(*shares)).max() < 1.95 / math.sqrt(len(found))


def test_rows_ids_and_skew_belong_together() -> None:
    """A generated table has them of one published table; nine in ten are drawn, in even
    shares of dims and kinds (5 standard errors)."""
    facts = {(t.rows, t.lookups_per_sample, t.access) for t in find_model("dlrm-856").tables}
    tables = drawn()
    found = {(t.rows, t.lookups_per_sample, t.access) for t in tables}
    assert found <= facts and len(found) > 0.9 * len(facts)
    for dim in DIMS:
        share = sum(t.dim == dim for t in tables) / len(tables)
        assert abs(share - 1 / 6) < 5 * math.sqrt(5 / 36 / len(tables))
    torchrec = sum(t.kind == "torchrec" for t in tables) / len(tables)
    assert abs(torchrec - 1 / 2) < 5 * math.sqrt(1 / 4 / len(tables))


def test_the_largest_table_scales_the_others() -> None:
    """``max_rows`` is what the largest of the 856 tables gets; by default the published rows."""
    largest = max(table.rows for table in find_model("dlrm-856").tables)
    assert largest == MOST_ROWS
    for one, other in zip(generate(50, 1).tables, generate(50, 1, max_rows=2 * largest).tables,
                          strict=True):  # fmt: skip
        assert other.rows == 2 * one.rows
    assert min(table.rows for table in generate(50, 1, max_rows=10_000).tables) == LEAST_ROWS


def test_source_says_how() -> None:
    """The model names the call that generates it, and survives its dictionary."""
    model = generate(2, 5, "dynamicemb", batch=64)
    assert "tables=2, seed=5, kind=dynamicemb, batch=64" in model.source
    assert model.workload.batch_per_rank == 64
    assert Model.from_dict(model.to_dict()) == model


@pytest.mark.parametrize(("arguments", "sentence"), mistakes(__file__, "mistakes"))
def test_mistakes(arguments: dict[str, object], sentence: str) -> None:
    """Numbers out of range and unknown kinds get sentences."""
    with pytest.raises(BadInput, match=sentence):
        generate(**arguments)  # type: ignore[arg-type]


def published(folder: Path, name: str) -> list[dict[str, float]]:
    """A file of the data set."""
    found: list[dict[str, float]] = json.loads((folder / "neuroshard" / name).read_text())
    return found


def test_rows_and_ids_are_the_published_ones(shared_data: Path) -> None:
    """856 tables in their order; 65,536 samples have 887,017,990 ids, as the data set states."""
    tables = find_model("dlrm-856").tables
    theirs = published(shared_data, "tables.json")
    assert [t.rows for t in tables] == [each["row"] for each in theirs]
    for table, each in zip(tables, theirs, strict=True):
        assert table.lookups_per_sample == pytest.approx(each["pooling_factor"], abs=1e-5)
    assert sum(t.lookups_per_sample for t in tables) * SAMPLES == pytest.approx(
        887_017_990, rel=1e-5
    )


def test_a_batch_has_as_many_distinct_ids_as_published() -> None:
    """128.4 million of all tables in 65,536 samples (locality_stats.txt of the data set): predicted
    from the popularity of their rows within 1%."""
    tables = find_model("dlrm-856").tables
    ids = [SAMPLES * t.lookups_per_sample for t in tables]
    found = [distinct_rows(t.access, t.rows, n, 1) for t, n in zip(tables, ids, strict=True)]
    assert sum(found) == pytest.approx(128_435_723, rel=0.01)


@pytest.mark.parametrize("number", [0, 57, 99])
def test_a_task_is_the_published_one(shared_data: Path, number: int) -> None:
    """Its tables, with repetition, and their widths."""
    theirs = published(shared_data, "tasks_15GB_dim128_seed0.json")[number]
    task = find_model(f"neuroshard:{number}")
    assert [int(t.name.partition("_t")[2]) for t in task.tables] == theirs["tables"]
    assert [t.dim for t in task.tables] == theirs["dims"]


def test_memory_is_rows_alone() -> None:
    """A task counts rows · columns · 4 bytes, and nothing for the exchange; our ledger does."""
    task, site = find_model("neuroshard:2"), find_cluster("4xdlrm-856-cpu")
    options = price(task, site)
    for table, first in zip(task.tables, options.first[:-1].tolist(), strict=True):
        entry = int(options.entries.first[first])
        assert options.names[first] == "table_wise/HBM_ONLY"
        assert options.entries.ledger[entry].sum() == table.rows * table.dim * 4
    workload = task.workload.model_copy(update={"storage_model": "runtime"})
    counted = price(task.model_copy(update={"workload": workload}), site)
    assert (counted.entries.ledger.sum(axis=1) > options.entries.ledger.sum(axis=1)).all()


def test_prices_are_the_fitted_sums() -> None:
    """Table 563 of task 1, by hand: 100 rows, 128 columns, an id a sample, distinct ids as priced.

    65,536 ids · (3.8756e-8 s + 512 B · 2.49016e-10 s/B) + 65,536 · 512 B · 3.23762e-10 s/B, and
    the terms of its distinct rows; half of it each pass.
    """
    task = find_model("neuroshard:1")
    table = task.tables[0]
    assert (table.rows, table.dim, table.lookups_per_sample) == (100, 128, 1.0)
    rows = distinct_rows(table.access, table.rows, SAMPLES, 1)
    row = 128 * 4
    seconds = SAMPLES * (3.8756e-08 + row * 2.49016e-10) + SAMPLES * row * 3.23762e-10
    seconds += rows * (6.67602e-08 + row * 6.2468e-10)
    options = price(task, find_cluster("4xdlrm-856-cpu"))
    cost = options.entries.cost[int(options.entries.first[0])]
    assert cost[[0, 2]].sum() * 1e-12 == pytest.approx(seconds, rel=1e-5)


@pytest.mark.parametrize(("name", "sentence"), mistakes(__file__, "tasks that do not exist"))
def test_tasks_that_do_not_exist(name: str, sentence: str) -> None:
    """One sentence names those that do."""
    with pytest.raises(BadInput, match=sentence):
        find_model(name)


def test_dreamshards_tasks_have_16_columns_of_fp16() -> None:
    """And no table twice."""
    task = find_model("dreamshard:100-49")
    assert len({t.name.partition("_")[2] for t in task.tables}) == len(task.tables) == 100
    assert {(t.dim, t.dtype) for t in task.tables} == {(16, "fp16")}
