"""Generated models are reproducible and have the announced shape."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from milp_planner.errors import BadInput
from milp_planner.inputs import Model
from scenarios.generator import ALPHA, DIMS, KINDS, POOLING, ROWS, generate

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


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"tables": -1}, r"tables: found -1; allowed: 0 to 100000"),
        ({"tables": 2, "batch": 0}, r"batch: found 0; allowed: 1 to"),
        ({"tables": 2, "max_rows": 9}, r"max_rows: found 9; allowed: 10000 to"),
        ({"tables": 2, "kind": "mix"}, r"kind: found 'mix'; .*did you mean mixed\?"),
    ],
)
def test_mistakes(arguments: dict[str, object], sentence: str) -> None:
    """Numbers out of range and unknown kinds get sentences."""
    with pytest.raises(BadInput, match=sentence):
        generate(**arguments)  # type: ignore[arg-type]
