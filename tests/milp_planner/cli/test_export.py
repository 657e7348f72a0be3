"""``milp-planner export`` writes what trainers read, and ``import-plan`` reads it back."""

import json
from pathlib import Path

import pytest
import yaml

from milp_planner.integrations import exports
from milp_planner.plans.plan_file import read_plan
from tests.milp_planner.cli.conftest import Cli
from tests.milp_planner.integrations.exports.plans import pins_of


@pytest.mark.parametrize("to", ["torchrec", "dynamicemb", "tzrec", "dlrmv4"])
def test_text_on_stdout_and_in_a_file(cli: Cli, planned: Path, tmp_path: Path, to: str) -> None:
    """Without -o, stdout holds the text alone; -o writes the same text; notes go to stderr."""
    done = cli("export", planned, "--to", to)
    assert done.code == 0
    assert done.out == exports.write(read_plan(planned), to)
    assert cli("export", planned, "--to", to, "-o", "out.txt").code == 0
    assert (tmp_path / "out.txt").read_text() == done.out
    as_json = cli("export", planned, "--to", to, "--json").json
    assert as_json["text"] == done.out
    assert all(note in " ".join(done.err.split()) for note in as_json["notes"])


def test_what_will_run_is_judged_first(cli: Cli, planned: Path) -> None:
    """What runs stands beside the plan on stderr and in --json; torchrec runs as planned."""
    runs = cli("export", planned, "--to", "torchrec", "--json").json["runs"]
    assert runs["exact"] and runs["runs"] == runs["planned"]
    done = cli("export", planned, "--to", "dlrmv4", "--json").json["runs"]
    words = cli("export", planned, "--to", "dlrmv4").err
    assert ("what runs is this plan" in words) == done["exact"]
    assert ("the plan says" in " ".join(words.split())) == (not done["exact"])


def test_what_would_stop_the_trainer_is_refused(cli: Cli, tmp_path: Path) -> None:
    """Exit code 1, a sentence that says why, and nothing written; unless the option states a
    version of TorchRec that has host memory, which the file keeps. Other formats have no use for
    it."""
    model = {"name": "m", "workload": {"batch_per_rank": 8},
             "tables": [{"name": "t", "rows": 8, "dim": 8, "constraints": {"modes": ["HOST_ONLY"]}}]
             }  # fmt: skip
    (tmp_path / "hosted.yaml").write_text(json.dumps(model))
    inputs = ("hosted.yaml", "cluster.yaml", "-f", "greedy")
    assert cli("plan", *inputs, "-o", "hosted.json").code == 0
    export = ("export", "hosted.json", "--to")
    done = cli(*export, "dlrmv4", "-o", "env.sh")
    assert done.code == 1 and "table 't' is HOST_ONLY" in done.err
    assert not (tmp_path / "env.sh").exists()
    done = cli(*export, "dlrmv4", "--json")
    assert json.loads(done.err)["error"]["kind"] == "falls_short"
    done = cli(*export, "dlrmv4", "--torchrec", "1.4.0", "-o", "env.sh")
    assert done.code == 0, done.err
    assert "export TORCHREC_VERSION=1.4.0" in (tmp_path / "env.sh").read_text()
    audit = cli("audit", "env.sh", *inputs, "--json")
    assert audit.code == 0 and audit.json["fits"]
    for to, version, code in (("dlrmv4", "1.7", 1), ("tzrec", "1.4", 2), ("torchrec", "1.4", 0)):
        done = cli(*export, to, "--torchrec", version)
        assert done.code == code, done.err


def test_read_back_pins_the_model(cli: Cli, planned: Path, tmp_path: Path) -> None:
    """A TorchRec plan read back pins every table; the pinned model plans to the same plan."""
    cli("export", planned, "--to", "torchrec", "-o", "plan.torchrec.json")
    done = cli(
        "import-plan", "plan.torchrec.json", "model.yaml", "--from", "torchrec", "-o", "p.yaml"
    )
    assert done.code == 0 and "users: mode" in done.out
    pinned = yaml.safe_load((tmp_path / "p.yaml").read_text())
    assert all(table["constraints"]["pin"]["ranks"] for table in pinned["tables"])
    assert cli("plan", "p.yaml", "cluster.yaml", "-f", "cpsat", "-o", "again.json").code == 0
    assert pins_of(read_plan(tmp_path / "again.json")) == pins_of(read_plan(planned))


def test_any_name_of_a_table_goes_there_and_back(cli: Cli, tmp_path: Path) -> None:
    """Tables named like a number, a variable or a command are exported, pinned and read again."""
    names = ("1e6", "${Z}", "$(date)", "yes")
    model = {"name": "m", "workload": {"batch_per_rank": 8},
             "defaults": {"rows": 8, "dim": 8, "constraints": {"modes": ["HBM_ONLY"]}},
             "tables": [{"name": name} for name in names]}  # fmt: skip
    (tmp_path / "named.yaml").write_text(json.dumps(model))
    plan = ("plan", "named.yaml", "cluster.yaml", "-f", "greedy", "-o", "named.plan.json")
    assert cli(*plan).code == 0
    done = cli("export", "named.plan.json", "--to", "dlrmv4", "-o", "env.sh")
    assert done.code == 0, done.err
    done = cli("import-plan", "env.sh", "named.yaml", "--from", "dlrmv4", "-o", "pinned.yaml")
    assert done.code == 0, done.err
    assert all(f"{name}: " in done.out for name in names)
    assert cli("check", "pinned.yaml", "cluster.yaml").code == 0


def test_read_back_as_json(cli: Cli, tmp_path: Path) -> None:
    """JSON of what DLRMv4's variables fix; null for what they leave open."""
    (tmp_path / "env.sh").write_text("export EMB_SHARDING_OVERRIDES=ads=tw\n")
    back = ("import-plan", "env.sh", "model.yaml", "--from", "dlrmv4")
    found = cli(*back, "--json").json
    assert found["ads"]["sharding_type"] == "table_wise"
    assert found["users"]["sharding_type"] is None
    assert "users: left to the trainer" in cli(*back).out


def test_plan_without_placement(cli: Cli, planned: Path, tmp_path: Path) -> None:
    """An infeasible plan has nothing to export."""
    text = (tmp_path / "cluster.yaml").read_text()
    (tmp_path / "tiny.yaml").write_text(
        text.replace("hbm: 2GiB", "hbm: 1MiB").replace("ddr: 4GiB", "ddr: 1MiB")
    )
    assert cli("plan", "model.yaml", "tiny.yaml", "-f", "cpsat", "-o", "none.json").code == 1
    assert json.loads((tmp_path / "none.json").read_text())["tables"] == []
    done = cli("export", "none.json", "--to", "torchrec")
    assert done.code == 2 and "nothing to export" in done.err


def test_a_dlrmv4_environment_is_read_whole(cli: Cli, tmp_path: Path) -> None:
    """Precision and codec reach the model; variables of elsewhere or nowhere are reported."""
    (tmp_path / "run.sh").write_text(
        "export EMB_SHARDING_OVERRIDES=album_id=auto,uid=rw HBM_CAP_GB=90 SEED=1\n"
        "export SPARSE_A2A_FWD=bf16 QCOMM_LOWMEM_CODEC=1\n"
    )
    done = cli("import-plan", "run.sh", "dlrmv4-yambda5b", "--from", "dlrmv4", "-o", "m.yaml")
    assert done.code == 0, done.err
    assert "HBM_CAP_GB=90 is what the trainer" in done.err and "not read: SEED" in done.err
    assert "workload exchange_dtype: bf16" in done.out
    written = yaml.safe_load((tmp_path / "m.yaml").read_text())
    assert written["workload"]["codec"] == "low_memory"
    pins = {t["name"]: t["constraints"].get("pin") or {} for t in written["tables"]}
    assert pins["uid"]["sharding_type"] == "row_wise"
    assert not pins["album_id"].get("sharding_type")
