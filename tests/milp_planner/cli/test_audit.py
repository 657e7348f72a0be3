"""``milp-planner audit``: whether a plan fits, how far it is from the bound, and what is to blame.

``milp-planner audit`` judges a file under all that it states and its trainer has.
"""

import json
from pathlib import Path
from typing import Protocol

import pytest

from milp_planner import read_plan
from tests.milp_planner.cli.conftest import CLUSTER, Cli, Done

CSV = """\
# what runs today
table, mode, ratio, sharding type, ranks
users, HBM_ONLY, , table_wise, 0
items, HBM_ONLY, , table_wise, 0
ads, HBM_ONLY, , row_wise, all
"""


def _audit(cli: Cli, csv: str, *more: str, cluster: str = "cluster.yaml") -> Done:
    Path("today.csv").write_text(csv)
    return cli("audit", "today.csv", "model.yaml", cluster, "-f", "cpsat", *more)


def test_a_plan_of_ours_is_at_its_bound(cli: Cli, planned: Path) -> None:
    """plan.json audited on its own inputs fits, with distance 0."""
    asked = ("audit", planned, "model.yaml", "cluster.yaml", "-f", "cpsat")
    done = cli(*asked, "--json")
    assert done.code == 0 and done.json["fits"] and done.json["distance"] == 0
    assert "no better plan was found" in cli(*asked).out


def test_a_lopsided_plan_names_its_slow_rank(cli: Cli) -> None:
    """With everything big on rank 0 the plan fits, but others wait for rank 0, mostly for items; -o
    keeps the better plan and --page its report, which verifies and costs what audit said."""
    done = _audit(cli, CSV, "-o", "better.json", "--page", "better.html", "--json")
    info = done.json
    assert done.code == 0 and info["fits"] and info["distance"] > 0 and info["saving"] > 0
    slow = info["slow"][0]
    assert slow["rank"] == 0 and slow["tables"][0]["table"] == "items"
    gain = info["gains"][0]
    assert gain["table"] == "items" and gain["better_cost"] < gain["cost"]
    assert cli("verify", "better.json").code == 0
    assert read_plan("better.json").outcome.objective == info["best"]
    assert Path("better.html").read_text().startswith("<!doctype html>")
    text = _audit(cli, CSV).out
    assert "FITS" in text and "to blame: rank 0" in text and "best plan found" in text
    assert f"better: items from {gain['option']}" in text
    assert max(len(line) for line in text.splitlines()) <= 100


def test_an_overfull_plan_names_place_and_tables(cli: Cli) -> None:
    """Not enough HBM on rank 0: exit code 1, rank 0 and its largest table are named; measured and
    predicted peaks are shown all the same."""
    Path("small.yaml").write_text(CLUSTER.replace("2GiB", "700MiB"))
    done = _audit(cli, CSV, "--peak", "0=1.9GiB", "--json", cluster="small.yaml")
    info = done.json
    assert done.code == 1 and not info["fits"]
    worst = info["overfull"][0]
    assert (worst["resource"], worst["scope"], worst["place"]) == ("hbm", "rank", 0)
    assert worst["used"] > worst["capacity"] and worst["tables"][0]["table"] == "items"
    assert info["peaks"]["ranks"][0]["predicted"] > 700 * 2**20
    text = _audit(cli, CSV, cluster="small.yaml").out
    assert "DOES NOT FIT" in text and "to blame: rank 0, hbm" in text and "as if it fitted" in text
    assert str(worst["used"]) not in text and "hbm of rank 0: " in text and "MiB too much" in text


def test_a_ratio_off_the_grid_is_priced(cli: Cli) -> None:
    """The user's own ratio joins the grid and is not refused."""
    csv = CSV.replace("items, HBM_ONLY, , table_wise", "items, CACHING, 37%, table_wise")
    done = _audit(cli, csv, "--json")
    assert done.code == 0, done.err


def test_column_shards_are_counted_by_their_ranks(cli: Cli) -> None:
    """Two ranks of a column-wise table mean two column shards, one on each rank."""
    csv = CSV.replace("items, HBM_ONLY, , table_wise, 0", 'items, HBM_ONLY, , column_wise, "0,1"')
    ask = "--json", "--profile", "b200"  # with slower links, both shards on one rank are faster
    both = _audit(cli, csv, *ask).json
    one = _audit(cli, csv.replace('"0,1"', '"1,1"'), *ask).json
    assert both["fits"] and both["objective"] < one["objective"]


def test_a_torchrec_plan_is_a_plan_of_today(cli: Cli, planned: Path) -> None:
    """An exported TorchRec plan can be audited, and a new plan can start from it."""
    assert cli("export", planned, "--to", "torchrec", "-o", "sharding.json").code == 0
    done = cli("audit", "sharding.json", "model.yaml", "cluster.yaml", "-f", "cpsat", "--json")
    assert done.code == 0 and done.json["distance"] == 0
    again = cli("plan", "model.yaml", "cluster.yaml", "--today", "sharding.json", "--json")
    assert again.code == 0 and again.json["outcome"]["objective"] == done.json["objective"]


def test_the_content_of_a_plan_counts_and_not_its_name(cli: Cli, planned: Path) -> None:
    """An exported ShardingPlan, and a plan.json, in files with another ending or none."""
    for name in ("sharding", "sharding.txt"):
        assert cli("export", planned, "--to", "torchrec", "-o", name).code == 0
        assert cli("audit", name, "model.yaml", "cluster.yaml", "-f", "greedy").code == 0
    planned.rename("plan.csv.old")
    assert cli("audit", "plan.csv.old", "model.yaml", "cluster.yaml", "-f", "greedy").code == 0


def test_a_measured_peak_stands_beside_the_predicted_one(cli: Cli) -> None:
    """Rank 0's rows alone take 745 MiB; the rest of its measured peak is outside the embeddings."""
    [rank] = _audit(cli, CSV, "--peak", "0=1.9GiB", "--json").json["peaks"]["ranks"]
    assert rank["rank"] == 0 and rank["measured"] == round(1.9 * 2**30)
    assert rank["embeddings"] > 3_000_000 * 64 * 4 and rank["predicted"] > rank["embeddings"]
    text = _audit(cli, CSV, "--peak", "0=1.9GiB").out
    assert "predicted" in text and "measured_peak:" in text


MODEL = {
    "name": "m",
    "workload": {
        "batch_per_rank": 1024, "dedup": True, "exchange_dtype": "fp16", "codec": "low_memory"
    },
    "defaults": {"dim": 128, "output": "sequence", "optimizer": "rowwise_adagrad"},
    "tables": [
        {"name": "a", "rows": 50_000, "sequence_length": 200,
         "access": {"kind": "unknown", "unique_fraction": 0.1}},
        {"name": "b", "rows": 700, "sequence_length": 1},
        {"name": "c", "rows": 90_000, "sequence_length": 1},
    ],
}  # fmt: skip
PLACED = "EMB_PLACEMENT=hbm EMB_SHARDING_OVERRIDES=a=row_wise,b=row_wise,c=table_wise\n"


class Audited(Protocol):
    """An audit of a file with some text."""

    def __call__(self, text: str, *more: str) -> Done: ...


@pytest.fixture
def audited(cli: Cli, tmp_path: Path) -> Audited:
    """The JSON of an audit of a file with some text, and its exit code."""
    (tmp_path / "m.yaml").write_text(json.dumps(MODEL))
    (tmp_path / "c.yaml").write_text(CLUSTER.replace("hbm: 2GiB", "hbm: 1GiB"))

    def run(text: str, *more: str) -> Done:
        (tmp_path / "env.sh").write_text(text)
        return cli("audit", "env.sh", "m.yaml", "c.yaml", "-f", "greedy", *more)

    return run


def test_every_variable_counts(audited: Audited) -> None:
    """A variable that differs from the model is said, and changes what the plan needs."""
    as_modelled = audited(PLACED, "--json").json
    assert as_modelled["stated"] == []
    for variable, field in (
        ("BATCH_SIZE=30000", "batch_per_rank 30000; the model has 1024"),
        ("EC_INDEX_DEDUP=0", "dedup false; the model has true"),
        ("SPARSE_A2A_FWD=fp32", "exchange_dtype fp32; the model has fp16"),
        ("QCOMM_LOWMEM_CODEC=0", "codec stock; the model has low_memory"),
    ):
        done = audited(f"{PLACED}{variable}\n", "--json")
        assert done.json["stated"] == [f"{variable}: {field}"]
        other = done.json["objective"] != as_modelled["objective"]
        assert other == (not variable.startswith("QCOMM")), "the codec takes memory, not time"
        assert done.code == variable.startswith("BATCH_SIZE"), "30 times the batch does not fit"
    assert f"note: {variable}" in " ".join(audited(f"{PLACED}{variable}\n").out.split())


def test_what_the_file_leaves_open(audited: Audited) -> None:
    """Overrides of a few tables: the rest is the choice of TorchRec's proposers."""
    for text in (
        "EMB_PLACEMENT=hbm\nEMB_SHARDING_OVERRIDES=a=column_wise\n",
        "EMB_PLACEMENT_OVERRIDES=c=hbm\n",
        "HBM_CAP_GB=1\n",
    ):
        done = audited(text)
        assert done.code in (0, 1) and "audit of env.sh" in done.out, done.err


def test_host_memory_by_torchrecs_version(audited: Audited) -> None:
    """uvm_caching stops the trainer with TorchRec from 1.7 on, and runs before."""
    text = f"{PLACED}EMB_PLACEMENT_OVERRIDES=c=uvm_caching\n"
    done = audited(text)
    assert done.code == 1 and "table 'c'" in done.err and "TORCHREC_VERSION below 1.7" in done.err
    assert "TorchRec 1.9's estimates" in " ".join(audited(text, "--torchrec", "1.4").out.split())
    assert audited(f"{text}TORCHREC_VERSION=1.6.0\n").code == 0
    done = audited(f"{text}TORCHREC_VERSION=1.7\n", "--torchrec", "1.4")
    assert done.code == 1, "the file's word counts"


def test_what_stops_the_trainer(audited: Audited) -> None:
    """hbm asks for a kernel that data-parallel tables do not have; bad values are bad input."""
    done = audited("EMB_PLACEMENT=hbm EMB_SHARDING_OVERRIDES=b=data_parallel\n")
    assert done.code == 1 and "No available sharding type" in done.err
    assert audited("EMB_PLACEMENT=auto EMB_SHARDING_OVERRIDES=b=data_parallel\n").code == 0
    assert audited("EMB_PLACEMENT=hbm HBM_CAP_GB=x\n").code == 2


def test_a_recipe_with_commands(audited: Audited) -> None:
    """A run script as it stands: what it assigns counts, also in front of a command; what it runs
    is listed. A variable whose value takes a shell to find is an error, with its line."""
    recipe = """#!/bin/bash
set -euo pipefail
cd "$(dirname "$0")"
export EMB_PLACEMENT=hbm
export EMB_SHARDING_OVERRIDES="a=row_wise,\\
b=row_wise,c=table_wise"
if [ -z "$SEED" ]; then SEED=$RANDOM; fi
EC_INDEX_DEDUP=0 torchrun --nproc-per-node=8 train.py \\
  --mode train | tee log
"""
    done = audited(recipe, "--json")
    plain = audited(f"{PLACED}EC_INDEX_DEDUP=0\n", "--json")
    assert done.json["objective"] == plain.json["objective"]
    assert done.json["stated"] == [
        "EC_INDEX_DEDUP=0: dedup false; the model has true",
        "commands are not run: line 2, 3, 7 and 1 more",
    ]
    done = audited(recipe + "BATCH_SIZE=$((8 * 128))\n")
    assert done.code == 2 and "line 10: not a shell assignment" in done.err


def test_accepted_forms_are_named(audited: Audited) -> None:
    """A text that is no plan: all forms are listed, DLRMv4's variables among them."""
    done = audited("hello\n")
    assert done.code == 2
    assert "EMB_PLACEMENT_OVERRIDES" in done.err and "statistics that TorchRec prints" in done.err
    assert "not judged: SEED" in audited(f"{PLACED}SEED=1\n").out


def test_other_forms_say_what_differs(cli: Cli, tmp_path: Path) -> None:
    """A plan.json made for another batch; TorchRec's JSON made with other sharders."""
    (tmp_path / "m.yaml").write_text(json.dumps(MODEL))
    (tmp_path / "n.yaml").write_text(json.dumps(MODEL | {"workload": {"batch_per_rank": 64}}))
    assert cli("plan", "m.yaml", "cluster.yaml", "-f", "greedy", "-o", "p.json").code == 0
    asked = ("n.yaml", "cluster.yaml", "-f", "greedy", "--json")
    stated = cli("audit", "p.json", *asked).json["stated"]
    assert "the plan was made for batch_per_rank 1024; judged with the model's, 64" in stated
    assert cli("export", "p.json", "--to", "torchrec", "-o", "t.json").code == 0
    found = cli("audit", "t.json", *asked).json
    assert "the file states dedup True; the model has False" in found["stated"]
    document = json.loads((tmp_path / "t.json").read_text())
    (tmp_path / "t.json").write_text(json.dumps(document | {"world_size": 16}))
    done = cli("audit", "t.json", "n.yaml", "cluster.yaml")
    assert done.code == 2 and "world_size: found 16; allowed: 2" in done.err


def test_a_plan_in_fp32_is_not_what_fp16_runs(cli: Cli, tmp_path: Path) -> None:
    """An export of a plan priced with fp32 is audited as that plan, not as the trainer's fp16."""
    work = {"batch_per_rank": 1024, "exchange_dtype": "fp32"}
    (tmp_path / "m.yaml").write_text(json.dumps(MODEL | {"workload": work}))
    assert cli("plan", "m.yaml", "cluster.yaml", "--for", "dlrmv4", "--time-limit", "4").code == 0
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert cli("export", "plan.json", "--to", "dlrmv4", "-o", "env.sh").code == 0
    text = (tmp_path / "env.sh").read_text()
    assert "SPARSE_A2A_FWD=fp32" in text and "SPARSE_A2A_BWD=fp32" in text
    found = cli("audit", "env.sh", "m.yaml", "cluster.yaml", "-f", "greedy", "--json").json
    assert found["stated"] == [] and found["objective"] == plan["outcome"]["objective"]


def test_a_profile_that_nobody_states_is_named(audited: Audited, tmp_path: Path) -> None:
    """As ``plan`` and ``check`` do: which constants price the plan."""
    assert audited(PLACED, "--json").json["note"] == ""
    unstated = (tmp_path / "c.yaml").read_text().replace("profile: h100\n", "")
    (tmp_path / "c.yaml").write_text(unstated)
    assert "states no profile" in audited(PLACED, "--json").json["note"]
    assert "note: the cluster states no profile" in " ".join(audited(PLACED).out.split())


def test_more_column_shards_than_ranks(audited: Audited, tmp_path: Path) -> None:
    """The trainer cuts 512 columns into four shards, also for two ranks; that has no price, and one
    sentence says so."""
    wide = json.loads((tmp_path / "m.yaml").read_text())
    wide["defaults"]["dim"] = 512
    (tmp_path / "m.yaml").write_text(json.dumps(wide))
    done = audited("EMB_PLACEMENT=hbm EMB_SHARDING_OVERRIDES=a=column_wise,b=row_wise\n")
    assert done.code == 2
    assert "table a: 4 column shards on 2 ranks have no price" in " ".join(done.err.split())
