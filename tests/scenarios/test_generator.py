"""Generated models are reproducible and have the announced shape.

The literature's tables and tasks: those that were published, and what is made of them.
"""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from milp_planner.errors import BadInput
from milp_planner.inputs import Model
from milp_planner.pricing import price
from milp_planner.pricing.popularity import distinct_rows
from scenarios.catalog import find_cluster, find_model
from scenarios.generator import ALPHA, DIMS, KINDS, POOLING, ROWS, generate
from scenarios.literature import SAMPLES
from tests.corpus import mistakes

FIRST_OF_SEED_0 = (23_860_932, 192, 5.18)
"""Values from random.Random(0): 1e4 · 1e4^0.84442, the sixth width, 50^0.42057."""


def test_same_seed_same_model() -> None:
    """The seed alone decides, now as when the generator was written."""
    assert generate(50, 1).fingerprint() == generate(50, 1).fingerprint()
    assert generate(50, 1).tables != generate(50, 2).tables
    first = generate(1, 0).tables[0]
    assert (first.rows, first.dim, first.pooling_factor) == FIRST_OF_SEED_0


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 2**40), st.sampled_from(KINDS))
def test_smaller_models_are_prefixes(few: int, more: int, seed: int, kind: str) -> None:
    """The first n tables of a larger model are the model of n tables."""
    assert generate(few, seed, kind).tables == generate(few + more, seed, kind).tables[:few]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**40), st.sampled_from(KINDS), st.integers(ROWS[0], 10**10))
def test_ranges(seed: int, kind: str, max_rows: int) -> None:
    """Every table is within the announced ranges and has the announced kind."""
    for table in generate(20, seed, kind, max_rows=max_rows).tables:
        assert ROWS[0] <= table.rows <= max_rows
        assert table.dim in DIMS
        assert POOLING[0] <= table.lookups_per_sample <= POOLING[1]
        assert table.access.kind == "zipf"
        assert ALPHA[0] <= table.access.alpha <= ALPHA[1]
        assert kind in ("mixed", table.kind)
        assert table.output == "pooled" or table.kind == "dynamicemb"


def test_rows_are_log_uniform() -> None:
    """Each of the four powers of ten has a quarter of 4,000 tables (5 standard errors)."""
    model = generate(4000, 3, "mixed")
    decades = [min(3, int(math.log10(table.rows / ROWS[0]))) for table in model.tables]
    for decade in range(4):
        assert abs(decades.count(decade) - 1000) < 5 * math.sqrt(4000 * 0.25 * 0.75)
    kinds = [table.kind for table in model.tables]
    assert abs(kinds.count("torchrec") - 2000) < 5 * math.sqrt(4000 * 0.25)


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
