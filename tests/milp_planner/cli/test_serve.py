"""``milp-planner serve``: what it refuses before it listens."""

import pytest

from milp_planner.cli.serve import TOKEN, is_loopback
from tests.milp_planner.cli.conftest import Cli

pytest.importorskip("uvicorn", reason="the extra serve is not installed")


def test_which_addresses_are_this_machine() -> None:
    """All of 127/8 and ::1; of names, only localhost."""
    assert [is_loopback(h) for h in ("127.0.0.1", "127.9.9.9", "::1", "localhost")] == [True] * 4
    assert [is_loopback(h) for h in ("0.0.0.0", "::", "10.0.0.1", "example.org")] == [False] * 4


def test_other_addresses_need_a_token(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 2 and one sentence before it listens; a short token does not count."""
    monkeypatch.delenv(TOKEN, raising=False)
    refused = cli("serve", "--host", "0.0.0.0")
    assert refused.code == 2 and f"set {TOKEN}" in refused.err
    monkeypatch.setenv(TOKEN, "short")
    assert "16 characters" in cli("serve").err
    monkeypatch.delenv(TOKEN)
    assert cli("serve", "--most-memory", "lots").code == 2
