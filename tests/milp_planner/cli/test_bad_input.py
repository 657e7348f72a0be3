"""Bad input at the command line: one clear sentence, exit code 2, nothing written."""

import gzip
import json
from pathlib import Path

import pytest

from tests.milp_planner.cli.conftest import CLUSTER, MODEL, Cli

#: (what is wrong, files to write, arguments, words of the sentence)
Case = tuple[dict[str, str], list[str], list[str]]
_PLAN = ["plan", "model.yaml", "cluster.yaml"]
_AUDIT = ["audit", "p.csv", "model.yaml", "cluster.yaml", "-f", "greedy"]
_HEAD = "table,mode,ratio,sharding_type,ranks\n"
_ROWS = "users,HBM_ONLY,,row_wise,all\nitems,HBM_ONLY,,row_wise,all\nads,HBM_ONLY,,table_wise,0\n"
_SUITE = "name: s\nmodels: model.yaml\nclusters: cluster.yaml\nformulations: [dp, greedy]\n"

CASES: dict[str, Case] = {
    "no such model": ({}, ["plan", "dlrmv4-yamba5b", "8xh100"], ["did you mean dlrmv4-yambda5b"]),
    "no such cluster": ({}, ["plan", "model.yaml", "8xh10"], ["did you mean 8xh100"]),
    "missing file": ({}, ["plan", "absent.yaml", "cluster.yaml"], ["absent.yaml"]),
    "unknown field": (
        {"model.yaml": MODEL.replace("rows: 1M", "row: 1M")},
        _PLAN,
        ["model.yaml:4", "did you mean rows"],
    ),
    "duplicate key": (
        {"model.yaml": MODEL.replace("dim: 64, pooling", "dim: 64, dim: 32, pooling", 1)},
        _PLAN,
        ["model.yaml:4", "dim"],
    ),
    "unit missing": (
        {"cluster.yaml": CLUSTER.replace("450GB/s", "450")}, _PLAN, ["cluster.yaml:7", "unit"]
    ),
    "wrong unit": (
        {"cluster.yaml": CLUSTER.replace("2GiB", "2Gb")}, _PLAN, ["cluster.yaml:5", "2Gb"]
    ),
    "number as text": (
        {"model.yaml": MODEL.replace("1M", "1e6")}, _PLAN, ["model.yaml:4", "1e6"]
    ),
    "unknown profile": (
        {"cluster.yaml": CLUSTER.replace("h100", "h10O")}, _PLAN, ["h10O", "did you mean 'h100'"]
    ),
    "rank beyond the cluster": (
        {"model.yaml": MODEL.replace("dim: 32}", "dim: 32, constraints: {ranks: [0, 9]}}")}, _PLAN,
        ["tables[2].constraints.ranks (table ads): found rank 9; allowed: 0 to 1 of cluster pair"],
    ),
    "no legal option": (
        {
            "model.yaml": MODEL.replace(
                "dim: 32}", "dim: 32, constraints: {sharding_types: grid_shard}}"
            )
        },
        _PLAN,
        ["ads", "two machines"],
    ),
    "unknown objective": (
        {}, [*_PLAN, "--objective", "step_tme"],
        ["found 'step_tme'; allowed: step_time, ", "did you mean step_time?"],
    ),
    "unknown kind": ({}, ["list", "modls"], ["found modls; allowed: ", "did you mean models?"]),
    "unknown formulation": ({}, [*_PLAN, "-f", "cpsta"], ["did you mean 'cpsat'"]),
    "time limit zero": ({}, [*_PLAN, "--time-limit", "0"], ["--time-limit", "above 0"]),
    "time limit no number": ({}, [*_PLAN, "--time-limit", "soon"], ["soon"]),
    "time limit not finite": ({}, [*_PLAN, "--time-limit", "nan"], ["a number"]),
    "negative seed": ({}, [*_PLAN, "--seed", "-1"], ["-1"]),
    "no workers": ({}, [*_PLAN, "--workers", "0"], ["0"]),
    "setting without value": ({}, [*_PLAN, "--set", "bins"], ["FIELD=VALUE"]),
    "unknown setting": ({}, [*_PLAN, "-f", "greedy", "--set", "bins=3"], ["bins"]),
    "setting of an exact model": (
        {}, [*_PLAN, "-f", "mip", "--set", "sover=cbc"], ["did you mean 'solver'"]
    ),
    "value of a setting": ({}, [*_PLAN, "-f", "mip", "--set", "solver=cpc"], ["'cpc'", "'cbc'"]),
    "setting of a comparison": (
        {}, ["compare", "model.yaml", "cluster.yaml", "--set", "dp.varian=x"], ["'variant'"]
    ),
    "setting of a suite": (
        {"s.yaml": f"{_SUITE}settings: {{dp.nonsense: 1}}\n"}, ["batch", "s.yaml", "-o", "runs"],
        ["s.yaml:5: settings.dp.nonsense: dp has no option 'nonsense'"],
    ),
    "unknown option": ({}, [*_PLAN, "--time-limt", "3"], ["--time-limt"]),
    "missing argument": ({}, ["plan", "model.yaml"], ["CLUSTER"]),
    "output folder absent": ({}, [*_PLAN, "-o", "no/such/plan.json"], ["does not exist"]),
    "output is a folder": ({}, [*_PLAN, "-o", "."], ["folder"]),
    "unknown formulations": (
        {}, ["compare", "model.yaml", "cluster.yaml", "-f", "dp,greddy"], ["did you mean 'greedy'"]
    ),
    "instance is no JSON": ({"i.json": "{"}, ["solve", "i.json"], ["i.json"]),
    "instance of another format": (
        {"i.json": '{"format": "x/2"}'}, ["solve", "i.json"], ["i.json"]
    ),
    "instance missing": ({}, ["solve", "i.json"], ["i.json"]),
    "plan is no plan": ({"p.json": '{"status": "optimal"}'}, ["verify", "p.json"], ["instance"]),
    "unknown kind to list": ({}, ["list", "model"], ["models"]),
    "init into nothing": ({}, ["init", "no/folder"], ["does not exist"]),
    "audit: no such table": (
        {"p.csv": _HEAD + _ROWS.replace("users", "user")}, _AUDIT, ["p.csv:2", "did you mean users"]
    ),
    "audit: table missing": (
        {"p.csv": _HEAD + _ROWS.split("ads")[0]}, _AUDIT, ["does not place table ads"]
    ),
    "audit: table twice": (
        {"p.csv": _HEAD + _ROWS + _ROWS.split("items")[0]}, _AUDIT, ["users", "twice"]
    ),
    "audit: unknown mode": (
        {"p.csv": _HEAD + _ROWS.replace("HBM_ONLY", "HBM", 1)}, _AUDIT, ["p.csv:2", "HBM_ONLY"]
    ),
    "audit: column missing": ({"p.csv": "table,mode\nusers,HBM_ONLY\n"}, _AUDIT, ["sharding_type"]),
    "audit: unknown column": (
        {"p.csv": _HEAD.replace("ranks", "rank") + _ROWS}, _AUDIT, ["did you mean ranks"]
    ),
    "audit: ratio of HBM_ONLY": (
        {"p.csv": _HEAD + _ROWS.replace("HBM_ONLY,,", "HBM_ONLY,0.5,", 1)}, _AUDIT, ["p.csv:2"]
    ),
    "audit: caching without ratio": (
        {"p.csv": _HEAD + _ROWS.replace("HBM_ONLY,,", "CACHING,,", 1)}, _AUDIT, ["needs a ratio"]
    ),
    "audit: rank beyond the cluster": (
        {"p.csv": _HEAD + _ROWS.replace("table_wise,0", "table_wise,2")}, _AUDIT, ["0 to 1"]
    ),
    "audit: too many ranks": (
        {"p.csv": _HEAD + _ROWS.replace("table_wise,0", "table_wise,0-1")}, _AUDIT, ["ads"]
    ),
    "audit: illegal option": (
        {"p.csv": _HEAD + _ROWS.replace("table_wise,0", "grid_shard,0")}, _AUDIT, ["ads", "legal"]
    ),
    "audit: no form of a plan": (
        {"p.csv": "a", "p.txt": "hello"}, ["audit", "p.txt", *_AUDIT[2:]],
        ["p.txt: is not a plan", "ShardingPlan", "table, mode, ratio"],
    ),
    "statistics that are none": (
        {"p.txt": "hello"}, ["import-stats", "p.txt", "-o", "/tmp"], ["holds no statistics"]
    ),
    "gap without its sign": ({}, [*_PLAN, "--gap", "5"], ["found '5';", "did you mean 5%?"]),
    "gap of either meaning": ({}, [*_PLAN, "--gap", "0.5"], ["did you mean 0.5%, or 50%?"]),
    "a folder as model": ({}, ["plan", ".", "cluster.yaml"], [".: is a folder"]),
    "a folder as cluster": ({}, ["plan", "model.yaml", "."], [".: is a folder"]),
    "a folder as suite": ({}, ["batch", ".", "-o", "runs"], [".: is a folder"]),
    "a path without ending": ({}, ["plan", "./absent", "cluster.yaml"], ["absent: no such file"]),
    "an empty list of clusters": (
        {"s.yaml": _SUITE.replace("cluster.yaml", "[]")}, ["batch", "s.yaml", "-o", "runs"],
        ["s.yaml:3: clusters: found an empty list; allowed: at least one name"],
    ),
    "a suite without clusters": (
        {"s.yaml": "name: s\nmodels: model.yaml\n"}, ["batch", "s.yaml", "-o", "runs"],
        ["clusters: is missing"],
    ),
    "exponent in an option": (
        {}, [*_PLAN, "--reserve", "hbm_bytes=1e9"], ["found 1e9; write the number out"]
    ),
    "standard input twice": ({}, ["plan", "-", "-"], ["- is given twice"]),
    "audit: ranks are no numbers": (
        {"p.csv": _HEAD + _ROWS.replace("table_wise,0", "table_wise,x")}, _AUDIT, ["'x'"]
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_one_sentence_exit_two_nothing_written(cli: Cli, tmp_path: Path, case: Case) -> None:
    """The sentence says what is wrong and what is allowed; stdout stays empty, the folder
    unchanged."""
    files, arguments, words = case
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    done = cli(*arguments)
    assert done.code == 2, (done.out, done.err)
    assert done.out == ""
    assert done.err.startswith("milp-planner: ") and done.err.count("\n") == 1, done.err
    assert all(word in done.err for word in words), done.err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_damaged_plan_is_one_sentence(cli: Cli, planned: Path) -> None:
    """A plan whose embedded model was edited is refused because of its fingerprint."""
    document = json.loads(planned.read_text())
    document["model"]["tables"][0]["rows"] += 1
    planned.write_text(json.dumps(document))
    done = cli("verify", planned)
    assert done.code == 2 and "fingerprint" in done.err and done.err.count("\n") == 1


def test_a_torn_gzip_is_one_sentence(cli: Cli, tmp_path: Path) -> None:
    """A truncated instance file is bad input, not a traceback."""
    whole = gzip.compress(b'{"format": "milp-planner-instance/1"}' * 50, mtime=0)
    (tmp_path / "i.json.gz").write_bytes(whole[: len(whole) // 2])
    done = cli("solve", "i.json.gz")
    assert done.code == 2 and "i.json.gz" in done.err and done.err.count("\n") == 1
