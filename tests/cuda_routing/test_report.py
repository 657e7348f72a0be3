"""The report behind ``milp-planner route``: files and distributions, figures and advice."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cuda_routing.errors import RoutingError
from cuda_routing.report import parse_distribution, route_report
from cuda_routing.rules import Rule


def test_strided_file(tmp_path: Path) -> None:
    """Ids that share a residue load one rank under roundrobin; the report recommends a hash."""
    np.save(tmp_path / "k.npy", np.arange(0, 80_000, 8))
    info = route_report([tmp_path / "k.npy"], 8)
    assert info.balances[Rule.ROUNDROBIN].max_over_mean == pytest.approx(8)
    assert info.advice.rule is not Rule.ROUNDROBIN
    assert info.lookups == 10_000
    assert info.sent_share == 1.0


def test_our_rule_is_shown_but_offered_only_by_name() -> None:
    """hash_independent is recommended only if it was asked for."""
    shown = route_report(["strided:6553600:256"], 256)
    assert Rule.HASH_INDEPENDENT in shown.balances
    assert Rule.HASH_INDEPENDENT not in shown.advice.balances
    asked = route_report(["strided:6553600:256"], 256, ["roundrobin", "hash_independent"])
    assert asked.advice.rule is Rule.HASH_INDEPENDENT


def test_distribution_and_json() -> None:
    """A Zipf table given by name; the JSON holds plain values that agree with the report."""
    info = route_report(["zipf:1.8:49332"], 8, batch=1000, row_bytes=100)
    data = json.loads(json.dumps(info.to_dict()))
    assert data["lookups"] is None
    assert data["hottest_keys"][0]["share"] == pytest.approx(0.53, abs=0.005)
    row = data["rules"]["roundrobin"]
    assert row["max_over_mean"] == info.balances[Rule.ROUNDROBIN].max_over_mean
    assert row["hot_rank_bytes"] == round(8000 * max(row["loads"])) * 108
    assert data["hottest_keys"][3]["owner"]["roundrobin"] == 3


def test_dedup_evens_out_a_hot_key() -> None:
    """After de-duplication, the hot key counts like any other."""
    info = route_report(["zipf:1.2:1000000"], 8)
    before, after = info.balances[Rule.ROUNDROBIN], info.after_dedup[Rule.ROUNDROBIN]
    assert before.max_over_mean > 1.5 > 1.05 > after.max_over_mean
    assert 0 < info.sent_share < 0.5


@pytest.mark.parametrize(
    "text", ["zipf:a:5", "zipf:1.0", "uniform:1:2", "strided:10.5:2", "uniform:x"]
)
def test_malformed_distributions(text: str) -> None:
    """A known name with wrong numbers is refused with what is allowed."""
    with pytest.raises(RoutingError, match="zipf:ALPHA:ROWS"):
        parse_distribution(text)


def test_other_texts_are_files() -> None:
    """A path is not a distribution, even with a colon in it."""
    assert parse_distribution("data/keys.npy") is None
    assert parse_distribution("C:/keys.npy") is None
    with pytest.raises(RoutingError, match="not a file"):
        route_report(["uniform"], 4)
