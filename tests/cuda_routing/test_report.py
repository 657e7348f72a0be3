"""The report on a table's ids: files and distributions, figures and advice. The
arithmetic of the result object.

The recommended rule for the patterns that occur in practice.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from cuda_routing.distributions import strided, uniform, zipf
from cuda_routing.errors import RoutingError
from cuda_routing.recommend import recommend
from cuda_routing.report import parse_distribution, route_report
from cuda_routing.result import Bucketized, Traffic
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


def test_saved_share() -> None:
    """Ten lookups that become four keys save 60%; with nothing to send, nothing is saved."""
    assert Traffic(10, 4, 80, 32).saved == 0.6
    assert Traffic(0, 0, 0, 0).saved == 0.0


def test_keys_per_rank() -> None:
    """Lengths of two ranks and three rows are added up by rank."""
    found = Bucketized(np.array([1, 2, 3, 0, 0, 1]), np.zeros(7), None, None, None, 2)
    assert found.keys_per_rank().tolist() == [6, 1]


def test_uniform_keeps_the_default() -> None:
    """If every rule is even, the runtime's default stays."""
    found = recommend(uniform(10**6), 8)
    assert found.rule is Rule.ROUNDROBIN
    assert found.advice is None


def test_strided_wants_a_hash() -> None:
    """Ids that share a residue get hash_roundrobin if blocks are not allowed."""
    found = recommend(strided(400_000, 8), 8, allowed=["roundrobin", "hash_roundrobin"])
    assert found.rule is Rule.HASH_ROUNDROBIN
    assert "8.00 under roundrobin" in found.reason


def test_large_power_of_two_prefers_the_independent_hash() -> None:
    """At 256 ranks the independent hash replaces the correlated one, if it is allowed."""
    load = strided(256 * 60_000, 256)
    both = recommend(load, 256, allowed=[1, 2, 3])
    assert both.rule is Rule.HASH_INDEPENDENT
    assert recommend(load, 256, allowed=[1, 2]).rule is Rule.HASH_ROUNDROBIN
    assert recommend(strided(8 * 60_000, 8), 8, allowed=[1, 2, 3]).rule is Rule.HASH_ROUNDROBIN


def test_one_hot_key_brings_advice_beyond_rules() -> None:
    """No rule can split a key of 53%, and the advice says so."""
    found = recommend(zipf(49_332, 1.8, shuffle_seed=3), 8)
    assert "53%" in found.advice
    assert "column_wise" in found.advice


def test_unknown_rows_never_recommend_continuous() -> None:
    """Without the number of rows, only rules that need no rows are considered."""
    load = strided(64, 8)
    blind = type(load)(load.keys, load.shares)
    assert Rule.CONTINUOUS not in recommend(blind, 8).balances
