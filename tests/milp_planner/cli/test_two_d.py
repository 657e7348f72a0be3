"""``--two-d`` divides the cluster into sharding groups from the command line."""

from __future__ import annotations

import pytest

from tests.milp_planner.cli.conftest import Cli

ASK = ("plan", "model.yaml", "cluster.yaml", "-f", "cpsat")


def test_the_table_of_divisions(cli: Cli) -> None:
    """The table lists every division, one of them chosen; verify re-derives that none is better."""
    done = cli(*ASK, "--two-d", "sync_interval=4", "-o", "two.json")
    assert done.code == 0
    assert "divisions into sharding groups" in done.out
    assert done.out.count("chosen") == 1
    told = cli("verify", "two.json")
    assert told.code == 0
    assert "none holds a better plan" in " ".join(told.out.split())


def test_one_division(cli: Cli) -> None:
    """If the division is given in full, nothing is chosen; the plan is that of one group."""
    fields = ("sharding_group_size=1", "layout=strided", "strategy=default")
    done = cli(*ASK, *(word for field in fields for word in ("--two-d", field)), "--json")
    assert done.code == 0
    assert "divisions" not in done.json
    assert done.json["instance"]["ranks"] == 1
    assert done.json["instance"]["phases"][-1] == "sync"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("sharding_group_size", "needs FIELD=VALUE"),
        ("layuot=strided", "did you mean layout"),
        ("layout=diagonal", "strided"),
        ("sharding_group_size=3", "do not divide the"),
    ],
)
def test_wrong_fields_are_a_sentence(cli: Cli, given: str, words: str) -> None:
    """Exit code 2, with what is allowed."""
    done = cli(*ASK, "--two-d", given)
    assert done.code == 2
    assert words in " ".join(done.err.split())
