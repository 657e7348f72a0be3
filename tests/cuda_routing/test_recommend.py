"""The recommended rule for the patterns that occur in practice."""

from __future__ import annotations

from cuda_routing.distributions import strided, uniform, zipf
from cuda_routing.recommend import recommend
from cuda_routing.rules import Rule


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
    assert found.advice is not None
    assert "53%" in found.advice
    assert "column_wise" in found.advice


def test_unknown_rows_never_recommend_continuous() -> None:
    """Without the number of rows, only rules that need no rows are considered."""
    load = strided(64, 8)
    blind = type(load)(load.keys, load.shares)
    assert Rule.CONTINUOUS not in recommend(blind, 8).balances
