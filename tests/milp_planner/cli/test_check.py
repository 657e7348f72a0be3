"""``milp-planner check`` as a user runs it.

What ``plan`` and ``explain`` say about prices that rest on unchecked hit ratios.
"""

from pathlib import Path

from tests.milp_planner.cli.conftest import CLUSTER, MODEL, Cli


def test_nothing_wrong_is_one_line(cli: Cli, tmp_path: Path) -> None:
    """Exit code 0 and one line, one more on host memory not stated; --json gives an empty list."""
    done = cli("check", "model.yaml", "cluster.yaml")
    first, second = done.out.splitlines()
    assert done.code == 0 and "no problems" in first
    assert second.startswith("no host memory is reserved for data loaders and checkpoints")
    (tmp_path / "model.yaml").write_text(f"{MODEL}\nhost_memory: {{loader_workers: 1}}\n")
    done = cli("check", "model.yaml", "cluster.yaml")
    assert done.code == 0 and done.out.count("\n") == 1 and "no problems" in done.out
    assert cli("check", "model.yaml", "cluster.yaml", "--json").json == []


def test_every_problem_is_a_line(cli: Cli, tmp_path: Path) -> None:
    """Exit code 2: check lists, in text and as objects, every problem that plan only counts."""
    (tmp_path / "model.yaml").write_text(MODEL.replace("dim", "dime"))
    (tmp_path / "cluster.yaml").write_text(CLUSTER.replace("450GB/s", "450"))
    planned = cli("plan", "model.yaml", "cluster.yaml")
    assert planned.code == 2
    assert "(and 5 more: milp-planner check MODEL CLUSTER lists them)" in planned.err
    done = cli("check", "model.yaml", "cluster.yaml")
    lines = done.out.splitlines()
    assert done.code == 2 and len(lines) == 7
    assert lines[0].startswith("model.yaml:4: tables[0].dime: unknown field; did you mean")
    listed = cli("check", "model.yaml", "cluster.yaml", "--json")
    keys = {"level", "message", "field", "file", "line"}
    assert listed.code == 2 and listed.json[0].keys() == keys
    assert {each["level"] for each in listed.json} == {"problem"}
    assert listed.json[6]["file"] == "cluster.yaml" and listed.json[6]["line"] == 7


def test_what_is_likely_not_meant_is_a_warning(cli: Cli, tmp_path: Path) -> None:
    """Exit code 0, since ``plan`` accepts it; a warning has file, line and field, as a problem
    has."""
    (tmp_path / "model.yaml").write_text(MODEL.replace("rows: 1M", "rows: 40000M"))
    odd = CLUSTER.replace("hbm_percent: 10", "hbm_percent: 0.15")
    (tmp_path / "cluster.yaml").write_text(odd)
    done = cli("check", "model.yaml", "cluster.yaml")
    first, second, last, _ = done.out.splitlines()
    assert done.code == 0 and last == "no problems in model.yaml and cluster.yaml, 2 warnings"
    assert first.startswith("warning: model.yaml:4: tables[0].rows: table users fits nowhere: ")
    assert second.endswith("reserves 0.15%; did you mean 15?")
    listed = cli("check", "model.yaml", "cluster.yaml", "--json").json
    assert [each["level"] for each in listed] == ["warning", "warning"]
    assert listed[1]["field"] == "reservations.hbm_percent" and listed[1]["file"] == "cluster.yaml"


def test_a_profile_that_nobody_stated_is_named(cli: Cli, tmp_path: Path) -> None:
    """Prices can be several times off: check warns at the file, plan says it in the verdict."""
    cluster = tmp_path / "cluster.yaml"
    said = "the cluster states no profile: prices are those of torchrec-default"
    assert said not in cli("check", "model.yaml", cluster).out
    assert said not in cli("plan", "model.yaml", cluster, "-f", "greedy").out
    cluster.write_text(CLUSTER.replace("profile: h100\n", ""))
    done = cli("check", "model.yaml", "cluster.yaml")
    assert done.code == 0 and f"warning: cluster.yaml:1: {said}" in done.out
    assert said not in cli("check", "model.yaml", "cluster.yaml", "--profile", "h100").out
    asked = ("plan", "model.yaml", "cluster.yaml", "-f", "greedy", "--json")
    for more in ((), ("--reserve", "hbm_percent=8")):
        assert said in cli(*asked, *more).json["outcome"]["note"]
    assert said not in cli(*asked, "--profile", "h100").json["outcome"]["note"]


TABLE = (
    "  - {{name: {name}, rows: 1M, dim: 16, kind: dynamicemb, access: {{kind: zipf, alpha: 1.0}}, "
    "constraints: {{modes: HYBRID, cache_ratios: [{ratio}]}}}}\n"
)
THIN_MODEL = "name: m\nworkload: {batch_per_rank: 64, fusion: free}\ntables:\n"
UNCHECKED = "Hit ratios outside the region that was checked (docs/trust/hit-ratio.md): thin"


def test_what_prices_take_on_trust_is_told(cli: Cli, tmp_path: Path) -> None:
    """HBM for 1% of the rows is outside the checked region: ``plan`` and ``explain`` name it, and
    not the other. Of hot rows whose ids are unknown, they and the page warn, too."""
    (tmp_path / "hits.yaml").write_text(CLUSTER.replace("profile: h100", "profile: a10"))
    tables = TABLE.format(name="wide", ratio=0.2) + TABLE.format(name="thin", ratio=0.01)
    (tmp_path / "thin.yaml").write_text(THIN_MODEL + tables)
    told = cli("plan", "thin.yaml", "hits.yaml", "-f", "greedy")
    asked = cli("explain", "plan.json", "--ask", "why", "--time-limit", 5)
    charged = "every rank is charged the load of the hottest one: "
    for done in (told, asked):
        assert done.code == 0
        assert [line for line in done.out.splitlines() if "Hit ratios" in line] == [UNCHECKED]
        assert f"{charged}wide (" in " ".join(done.out.split())
    assert cli("report", "plan.json", "-o", "page.html").code == 0
    assert charged in (tmp_path / "page.html").read_text()
