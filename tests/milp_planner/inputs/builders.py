"""Small valid inputs that tests change one field at a time."""

from typing import Any

MODEL_YAML = """\
name: m
workload: {batch_per_rank: 1024}
defaults: {dim: 64, rows: 2M}
tables:
  - name: a
  - name: b
    access: {kind: zipf, alpha: 1.05}
    constraints:
      pin: {mode: CACHING, cache_ratio: 35%}
"""

CLUSTER_YAML = """\
name: c
machines: 4
ranks_per_machine: 8
hbm: 80GiB
ddr: 2TiB
interconnect: {intra_machine: 450GB/s, inter_machine: 50GB/s}
"""


def table(**fields: Any) -> dict[str, Any]:
    """A table's fields, some of them changed."""
    return {"name": "t", "rows": 1000, "dim": 8, **fields}


def model(*tables: dict[str, Any], **workload: Any) -> dict[str, Any]:
    """A model's fields with those tables."""
    return {
        "name": "m",
        "workload": {"batch_per_rank": 4, **workload},
        "tables": list(tables),
    }


def cluster(**fields: Any) -> dict[str, Any]:
    """A cluster's fields, some of them changed: two machines of two ranks."""
    return {
        "name": "c",
        "machines": 2,
        "ranks_per_machine": 2,
        "hbm": 100_000,
        "ddr": 1_000_000,
        "interconnect": {"intra_machine": "400GB/s", "inter_machine": "50GB/s"},
        **fields,
    }
