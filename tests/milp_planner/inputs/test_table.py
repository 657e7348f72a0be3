"""One table: derived figures and contradictions."""

from __future__ import annotations

from typing import Any

import pytest

from milp_planner.errors import BadInput
from milp_planner.inputs import Table
from milp_planner.inputs.table import ELEMENT_BYTES
from tests.milp_planner.inputs.builders import table


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, 1.0),
        ({"pooling_factor": 20, "num_features": 3}, 60.0),
        ({"output": "sequence", "sequence_length": 200.5}, 200.5),
        ({"output": "sequence", "num_features": 2}, 2.0),
        ({"output": "sequence", "sequence_length": 0.5}, 0.5),
        ({"pooling_factor": 0.25}, 0.25),
        ({"pooling_factor": 0}, 0.0),
        ({"pooling_factor": 2, "num_poolings": 7.5, "num_features": 2}, 30.0),
    ],
)
def test_lookups_per_sample(fields: dict[str, Any], expected: float) -> None:
    """Ids per sample: features times pooling factor or sequence length, one by default."""
    assert Table.from_dict(table(**fields)).lookups_per_sample == expected


def test_weight_bytes() -> None:
    """Rows times columns times element size, for every element type."""
    sizes = {"fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1}
    assert sizes.keys() == ELEMENT_BYTES.keys()
    for dtype, size in sizes.items():
        read = Table.from_dict(table(rows="2k", dim=16, dtype=dtype))
        assert read.weight_bytes == 2000 * 16 * size


def test_feature_names() -> None:
    """Exports use the written features, else the table's name, numbered if several share it."""
    assert Table.from_dict(table()).feature_names == ("t",)
    assert Table.from_dict(table(num_features=2)).feature_names == ("t_0", "t_1")
    named = table(features=["x", "y"], num_features=2)
    assert Table.from_dict(named).feature_names == ("x", "y")


def test_one_dist_type_needs_no_brackets() -> None:
    """A single routing rule means the same as a list of one."""
    one = Table.from_dict(table(kind="dynamicemb", dist_types="continuous"))
    assert one.dist_types == ("continuous",)
    assert Table.from_dict(table()).dist_types == ("roundrobin",)


def test_column_width_may_be_the_whole_table() -> None:
    """A column shard as wide as the table is the whole table."""
    limits = {"column_widths": [4, 8], "pin": {"column_width": 8}}
    pin = Table.from_dict(table(dim=8, constraints=limits)).constraints.pin
    assert pin is not None and pin.column_width == 8


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"name": "a b"}, r"name: found 'a b'; allowed: a name without blanks"),
        ({"name": ""}, r"name: found ''; allowed: at least one character"),
        ({"name": 7}, r"name: found 7; allowed: text"),
        ({"rows": 0}, r"rows: found 0; allowed: at least 1"),
        ({"rows": "1e6"}, r"rows: found '1e6'; allowed: a whole number"),
        ({"dim": 0}, r"dim: found 0; allowed: at least 1"),
        ({"dim": 130}, r"dim: found 130; allowed with kind: torchrec: multiples of 4"),
        (
            {"rows": 2**32 + 1, "index_type": "int32"},
            r"rows: found 4294967297; allowed with index_type int32: up to 2\*\*32",
        ),
        (
            {"index_type": "int32", "access": {"kind": "zipf", "alpha": 1, "hot_ids": [2**32]}},
            r"access: found id 4294967296; allowed with index_type int32: ids below 2\*\*32",
        ),
        ({"dtype": "float32"}, r"dtype: found 'float32'; allowed: fp32, fp16"),
        ({"optimizer": "adamw"}, r"optimizer: found 'adamw'; .*did you mean adam\?"),
        ({"kind": "dynamic_emb"}, r"kind: .*did you mean dynamicemb\?"),
        ({"pooling_factor": -1}, r"pooling_factor: found -1; allowed: at least 0"),
        ({"output": "sequence", "num_poolings": 2.0}, r"num_poolings: goes with output: pooled"),
        ({"sequence_length": 5}, r"sequence_length: goes with output: sequence"),
        ({"output": "sequence", "pooling_factor": 5}, r"pooling_factor: goes with output: pooled"),
        ({"features": ["x", "y"]}, r"features: found 2 names; allowed: 1"),
        ({"weighted": "true"}, r"weighted: found 'true'; allowed: true or false"),
        ({"dist_types": ["continuous"]}, r"dist_types: goes with kind: dynamicemb"),
        ({"admission_capacity": "1M"}, r"admission_capacity: goes with kind: dynamicemb"),
        ({"constraints": {"modes": "HYBRID"}}, r"constraints: HYBRID exists only for dynamicemb"),
        (
            {"kind": "dynamicemb", "constraints": {"pin": {"sharding_type": "table_wise"}}},
            r"constraints: dynamicemb tables are sharded row_wise only",
        ),
        (
            {"constraints": {"column_widths": [4, 16]}},
            r"constraints\.column_widths\[1\]: found 16; allowed: multiples of 4 up to dim 8",
        ),
        (
            {"constraints": {"column_widths": [7]}},
            r"constraints\.column_widths\[0\]: found 7; allowed: multiples of 4 up to dim 8",
        ),
        (
            {"constraints": {"pin": {"column_width": 9}}},
            r"constraints\.pin\.column_width: found 9; allowed: up to dim 8",
        ),
        (
            {"kind": "dynamicemb", "constraints": {"pin": {"dist_type": "continuous"}}},
            r"constraints\.pin\.dist_type: found continuous; allowed: dist_types of the table",
        ),
        ({"row": 5}, r"row: unknown field; did you mean rows\?"),
    ],
)
def test_mistakes(fields: dict[str, Any], sentence: str) -> None:
    """Each mistake gets one sentence with the field, what was found and what is allowed."""
    with pytest.raises(BadInput, match=f"^{sentence}"):
        Table.from_dict(table(**fields))
