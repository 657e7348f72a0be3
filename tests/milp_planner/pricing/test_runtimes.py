"""The registry of runtimes, and a new one: one file (``toy_runtime.py``) and one line."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from milp_planner.kinds import KINDS
from milp_planner.pricing import price
from milp_planner.pricing.entries import SHARD_NAMES
from milp_planner.pricing.job import option_columns
from milp_planner.pricing.runtimes.registry import by_runtime, home, kernel_of, named, runtimes
from milp_planner.pricing.shards import ROWS
from tests.milp_planner.pricing.build import cluster, model, priced

CODE = """
from milp_planner.kinds import KINDS
KINDS["toy"] = ("tests.milp_planner.pricing.toy_runtime",)

import json
from milp_planner import plan, verify
from milp_planner.inputs import Cluster, Model
from milp_planner.plans.ledger import ledger_of
model, cluster = json.loads(input())
best = plan(Model.from_dict(model), Cluster.from_dict(cluster), time_limit=20)
places = ledger_of(best).hbm
from milp_planner.errors import BadInput
from tests.milp_planner.pricing.build import priced
refused = []
for table in ({"kind": "toi"}, {"kind": "toy", "constraints": {"modes": "HOST_ONLY"}}):
    try:
        priced(table)
    except BadInput as error:
        refused.append(str(error))
print(json.dumps({
    "refused": refused, "status": best.status, "verified": verify(best).ok,
    "tables": {t.name: [t.kind, t.mode, t.kernel, t.sharding_type] for t in best.tables},
    "metadata": sum(place.entries.get("metadata", 0) for place in places),
}))
"""
ROOT = Path(__file__).resolve().parents[3]


def test_a_new_runtime_is_planned_and_verified() -> None:
    """Registered in a process of its own, a toy table beside two others: its option, bytes,
    certificate and kernel. Its kind is among the allowed ones, and its own rules are those of a
    refusal."""
    tables = [
        {"name": "mine", "rows": 5000, "dim": 64, "kind": "toy"},
        {"name": "theirs", "rows": 4000, "dim": 32},
        {"name": "hashed", "rows": 4096, "dim": 32, "kind": "dynamicemb", "optimizer": "sgd"},
    ]
    document = {"name": "m", "workload": {"batch_per_rank": 64}, "tables": tables}
    site = cluster(ranks=2).to_dict()
    command = [sys.executable, "-c", CODE]
    given = json.dumps([document, site])
    ran = subprocess.run(command, input=given, capture_output=True, text=True, cwd=ROOT)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert (found["status"], found["verified"]) == ("optimal", True)
    assert found["tables"]["mine"] == ["toy", "HBM_ONLY", "toy_kernel", "table_wise"]
    assert found["tables"]["theirs"][0] == "torchrec"
    assert found["metadata"] > 5000  # a byte a row, and dynamicemb's keys
    first, second = found["refused"]
    assert "allowed: torchrec, dynamicemb, toy" in first
    assert second.endswith("allowed: toy tables are table_wise in HBM_ONLY")


def test_every_kind_has_its_runtimes() -> None:
    """Their names differ, and an option's runtime is found by name."""
    names = [each.name for each in runtimes()]
    assert names == ["torchrec", "key_value", "dynamicemb"]
    assert all(named(name).name == name for name in names)
    assert {kind: home(kind).name for kind in KINDS} == {kind: kind for kind in KINDS}
    assert home("torchrec", virtual=True).name == "key_value"


def test_options_know_their_runtime() -> None:
    """A table on a machine with SSD has options of both of its runtimes, others of one."""
    site = cluster(ranks=2, ssd={"size": "1TB", "bandwidth": "10GB/s"})
    options = price(model({"rows": 10**6}, {"kind": "dynamicemb"}), site)
    found = [{options.choices[o].runtime for o in options.of(table)} for table in range(2)]
    assert found == [{"torchrec", "key_value"}, {"dynamicemb"}]
    assert all(
        (options.choices[o].runtime == "key_value") == (options.choices[o].mode == "SSD")
        for o in options.of(0)
    )


def test_by_runtime_covers_every_option_once() -> None:
    """The places of all runtimes together are all places."""
    options = priced({}, {"kind": "dynamicemb"})
    tables = np.repeat([0, 1], np.diff(options.first)).tolist()
    columns = option_columns(list(options.choices), 8, tables)
    every = np.arange(len(options))
    places = np.concatenate([every[at] for _, at in by_runtime(columns)])
    assert sorted(places.tolist()) == every.tolist()
    first = columns.at(np.flatnonzero(columns.table == 0))
    assert [every[at].tolist() for _, at in by_runtime(first)] == [every.tolist()]


def test_rows_enter_the_ledger_by_name() -> None:
    """Every entry that rows take is one of the ledger's."""
    assert set(ROWS) <= set(SHARD_NAMES)


@pytest.mark.parametrize(
    ("asked", "kernel"),
    [
        (("torchrec", "row_wise", "SSD"), "key_value"),
        (("torchrec", "row_wise", "CACHING", False, True), "dram_virtual_table"),
        (("torchrec", "data_parallel", "HBM_ONLY"), "dense"),
        (("torchrec", "row_wise", "HBM_ONLY"), "fused"),
        (("torchrec", "row_wise", "CACHING"), "fused_uvm_caching"),
        (("torchrec", "row_wise", "HOST_ONLY"), "fused_uvm"),
        (("torchrec", "row_wise", "HOST_ONLY", True), "fused"),  # CPUs have no UVM
        (("dynamicemb", "row_wise", "HYBRID"), "customized_kernel"),
    ],
)
def test_kernels(asked: tuple[object, ...], kernel: str) -> None:
    """The name in a trainer's configuration is that of the runtime which has the mode."""
    assert kernel_of(*asked) == kernel  # type: ignore[arg-type]
