"""``milp-planner verify``: honest files pass, changed ones do not."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from formulations import Settings, checker, read_instance, solve, write_instance
from formulations.result.outcome_file import outcome_to_dict
from milp_planner.plans.compile import as_current
from milp_planner.plans.placement import Plan, placed_tables
from milp_planner.plans.plan_file import plan_to_dict, read_plan, write_plan
from milp_planner.version import __version__
from tests.milp_planner.cli.conftest import Cli
from tests.milp_planner.features.example import example


def test_a_plan_verifies(cli: Cli, planned: Path) -> None:
    """Placement, objective and pricing are re-derived; the solver's word is called that."""
    done = cli("verify", planned)
    assert done.code == 0 and "✓  placement" in done.out and "✓  pricing" in done.out
    assert "verified" in done.out
    claims = {c["name"]: c["ok"] for c in cli("verify", planned, "--json").json["claims"]}
    assert claims["placement"] is True and claims["objective"] is True


@pytest.mark.parametrize(("claim", "by"), [("objective", -1), ("bound", 1), ("certified_bound", 1)])
def test_a_changed_claim_is_refuted(cli: Cli, planned: Path, claim: str, by: int) -> None:
    """An understated cost, a raised bound, a raised certificate: exit code 1."""
    document = json.loads(planned.read_text())
    outcome = document["outcome"]
    outcome[claim] += by
    outcome["gap"] = (outcome["objective"] - outcome["bound"]) / max(1, abs(outcome["objective"]))
    planned.write_text(json.dumps(document))
    done = cli("verify", planned)
    assert done.code == 1 and "✗" in done.out and "refuted" in done.out


def test_a_cheaper_instance_inside_a_plan_is_noticed(cli: Cli, planned: Path) -> None:
    """Lowered costs with a matching fingerprint are noticed when the model is priced again."""
    planned.write_text(json.dumps(plan_to_dict(_cheaper(read_plan(planned)))))
    done = cli("verify", planned)
    assert done.code == 1 and "✗  pricing" in done.out


def _cheaper(plan: Plan) -> Plan:
    """The plan with an instance of half the costs, solved again."""
    instance = replace(plan.instance, shard_cost=plan.instance.shard_cost // 2)
    outcome = solve(instance, "cpsat", Settings(time_limit=10))
    tables = placed_tables(plan.model, plan.cluster, instance, outcome.placement)
    return replace(plan, instance=instance, outcome=outcome, tables=tables)


def _restricted(planned: Path) -> None:
    """A plan whose instance lets nothing move away from it, solved again."""
    plan = read_plan(planned)
    instance, outcome = plan.instance, plan.outcome
    assert outcome.placement is not None
    asked = replace(instance, current=as_current(outcome.placement), max_moved_tables=0)
    again = solve(asked, "cpsat", Settings(time_limit=10)).with_(detail=outcome.detail)
    write_plan(replace(plan, instance=asked, outcome=again), planned)


def test_a_restricted_question_is_named_on_the_first_lines(cli: Cli, planned: Path) -> None:
    """A re-plan may restrict moves, nothing is refuted; but every reader names the restriction."""
    demand = "max_moved_tables: at most 0 tables may move, of 3 tables in current"
    assert "!  restricted" not in cli("verify", planned).out
    assert cli("verify", planned, "--json").json["restrictions"] == []
    _restricted(planned)
    done = cli("verify", planned.name)
    assert done.code == 0 and demand in done.out.splitlines()[1]
    assert "of a restricted question (max_moved_tables)" in done.out.splitlines()[-1]
    assert cli("verify", planned, "--json").json["restrictions"] == [demand]
    asked = ("explain", planned, "--ask", "why", "--time-limit", 5)
    assert cli(*asked).out.startswith(f"restricted: {demand}\n")
    assert cli(*asked, "--json").json["restrictions"] == [demand]
    assert "restricted by max_moved_tables" in str(read_plan(planned))
    assert cli("report", planned, "-o", "page.html").code == 0
    page = planned.with_name("page.html").read_text()
    assert page.index("max_moved_tables") < page.index("<dt>status")


def test_prices_of_another_version_are_not_judged(cli: Cli, planned: Path) -> None:
    """If prices differ, the first lines say so, and the exit code does not mean verified."""
    plan = read_plan(planned)
    document = plan_to_dict(_cheaper(plan))
    assert document["version"] == __version__
    for version, named in (("0.1.9", "milp-planner '0.1.9'"), ("", "another milp-planner")):
        planned.write_text(json.dumps(document | {"version": version}))
        done = cli("verify", planned.name)
        assert done.code == 3 and "! not checked its bytes and prices" in spaced(done.out)[:120]
        assert f"the file says that {named} wrote it" in spaced(done.out)[:300]
        assert "✓ pricing" not in spaced(done.out) and "not checked: pricing" in done.out
    found = cli("verify", planned, "--json").json
    assert (found["ok"], found["checked"]) == (False, False) and len(found["unchecked"]) == 1
    assert {c["name"]: c["ok"] for c in found["claims"]}["pricing"] is None
    document = plan_to_dict(replace(plan, version="0.1.9"))
    planned.write_text(json.dumps(document))
    assert cli("verify", planned).code == 0  # the same prices as this version's


def spaced(text: str) -> str:
    """The words separated by single blanks, whatever the terminal's width."""
    return " ".join(text.split())


def test_a_plan_with_fingerprints_of_another_kind(cli: Cli) -> None:
    """It is refused in a sentence that says what to do."""
    path = Path(__file__).parents[4] / "shared/data/forged/r3_question.json"
    if not path.exists():
        pytest.skip(f"needs {path}")
    done = cli("verify", path)
    assert done.code == 2 and "0.1.0; this is" in done.err and "plan again" in done.err


def test_an_outcome_needs_its_instance(cli: Cli, tmp_path: Path) -> None:
    """Alone it is bad input; it verifies with the right instance and not with another."""
    write_instance(example(), tmp_path / "i.json")
    write_instance(example(hbm=75), tmp_path / "smaller.json")
    instance = read_instance(tmp_path / "i.json")
    outcome = solve(instance, "cpsat", Settings(time_limit=10))
    (tmp_path / "o.json").write_text(json.dumps(outcome_to_dict(instance, outcome)))
    alone = cli("verify", "o.json")
    assert alone.code == 2 and "--instance" in alone.err and alone.out == ""
    assert cli("verify", "o.json", "--instance", "i.json").code == 0
    assert cli("verify", "o.json", "--instance", "smaller.json").code in (1, 2)


def test_no_solver_is_imported(cli: Cli, planned: Path) -> None:
    """The proof is checked by arithmetic: no solver module is even loaded."""
    import subprocess
    import sys

    program = (
        "import sys; from milp_planner.cli.main import run; code = run(['verify', sys.argv[1]]); "
        "assert not {'ortools', 'highspy', 'pulp'} & set(sys.modules); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(planned)], check=False,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_malformed_and_too_long_certificates(
    cli: Cli, planned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A malformed certificate, even below its root, is bad input; too long a one is exit code 3."""
    document = json.loads(planned.read_text())
    certificate = document["outcome"]["certificate"]
    split = {"table": 0, "options": [[0]]}
    planned.write_text(json.dumps(_with(document, {**certificate, "nodes": [{}, split]})))
    done = cli("verify", planned)
    assert done.code == 2 and "comes before the split" in done.err and "Traceback" not in done.err
    planned.write_text(json.dumps(document))
    monkeypatch.setattr(checker, "MOST_STEPS", 0)
    monkeypatch.setattr(checker, "STEPS_PER_OPTION", 0)
    done = cli("verify", planned)
    assert done.code == 3 and "not checked" in done.out


def _with(document: dict[str, Any], certificate: object) -> dict[str, Any]:
    return {**document, "outcome": {**document["outcome"], "certificate": certificate}}


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(more=1),
        lambda d: d["fingerprints"].update(more=""),
        lambda d: d["fingerprints"].pop("model"),
        lambda d: d.update(outcome=d["outcome"] | {"encoding": "json+gzip+base64", "data": ""}),
        lambda d: d.update(outcome={"encoding": "json+gzip+base64", "data": "e30="}),
        lambda d: d["outcome"]["certificate"].update(version=3.0),
    ],
)
def test_one_readers_rules(
    cli: Cli, planned: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    """The stand-alone checker and verify refuse to read the same files."""
    document = json.loads(planned.read_text())
    change(document)
    planned.write_text(json.dumps(document))
    assert checker.main([str(planned)]) == 2
    assert cli("verify", planned).code == 2


def test_a_plan_of_a_newer_format_is_called_one(cli: Cli, planned: Path) -> None:
    """It is a plan.json all the same, so no instance is asked for."""
    planned.write_text(planned.read_text().replace("milp-planner-plan/1", "milp-planner-plan/2"))
    for command in ("verify", "explain", "report"):
        done = cli(command, planned)
        assert done.code == 2 and "'milp-planner-plan/2', of a newer milp-planner" in done.err
