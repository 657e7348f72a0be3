"""``--reserve`` sets fields of the cluster's reservations on the command line."""

from __future__ import annotations

import pytest

from tests.milp_planner.cli.conftest import Cli


def _hbm(done: object) -> int:
    return int(done.json["instance"]["resources"][0]["capacity"][0])  # type: ignore[attr-defined]


def test_what_is_reserved_is_what_embeddings_lose(cli: Cli) -> None:
    """Embeddings lose 100 MiB per rank, to the byte; the plan's own cluster says so."""
    ask = ("plan", "model.yaml", "cluster.yaml", "-f", "greedy", "--json")
    plain, held = cli(*ask), cli(*ask, "--reserve", "hbm_bytes=100MiB")
    assert plain.code == held.code == 0
    assert _hbm(plain) - _hbm(held) == 100 * 2**20
    assert held.json["cluster"]["reservations"]["hbm_bytes"] == 100 * 2**20


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("hbm_bytes", "needs FIELD=VALUE"),
        ("hbm_byte=1GB", "did you mean hbm_bytes"),
        ("hbm_percent=101", "hbm_percent"),
        ("hbm_bytes=1e6", "1e6"),
    ],
)
def test_wrong_reservations_are_a_sentence(cli: Cli, given: str, words: str) -> None:
    """Exit code 2, with what is allowed."""
    done = cli("plan", "model.yaml", "cluster.yaml", "-f", "greedy", "--reserve", given)
    assert done.code == 2 and words in " ".join(done.err.split()) and "--reserve" in done.err
