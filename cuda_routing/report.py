"""Which rank owns which keys, and how even each rule is, as one value for JSON and plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cuda_routing.balance import Balance, balances
from cuda_routing.distributions import KeyLoad, after_dedup, strided, uniform, zipf
from cuda_routing.errors import RoutingError
from cuda_routing.key_files import KeyFiles
from cuda_routing.recommend import ALLOWED, Recommendation, choose
from cuda_routing.rules import Rule, block_size_of, owners
from cuda_routing.streaming import BATCH, StreamBalance, stream_balance

SPECS = "uniform:ROWS, zipf:ALPHA:ROWS, strided:ROWS:STEP"


@dataclass(frozen=True)
class HotKey:
    """One of the most frequent keys.

    Attributes
    ----------
    key : int
    share : float
        Its share of the lookups.
    owner : dict of Rule to int
        Its owner under each rule.
    """

    key: int
    share: float
    owner: dict[Rule, int]


@dataclass(frozen=True)
class RouteInfo:
    """Balance of a key source under several rules.

    Attributes
    ----------
    source : str
        File names or distribution.
    ranks, batch : int
        Ranks, and lookups that one sender de-duplicates together.
    lookups : int or None
        Keys counted; None for a distribution.
    rows : int
        Size of the table; 0 when unknown.
    balances, after_dedup : dict of Rule to Balance
    sent_share : float
        Share of the lookups that is still sent after de-duplication.
    hottest : list of HotKey
    advice : Recommendation
        Among the requested rules; by default among dynamicemb's three.
    row_bytes : int
        Bytes of an embedding row as sent back.
    """

    source: str
    ranks: int
    batch: int
    lookups: int | None
    rows: int
    balances: dict[Rule, Balance]
    after_dedup: dict[Rule, Balance]
    sent_share: float
    hottest: list[HotKey]
    advice: Recommendation
    row_bytes: int

    def hot_rank_bytes(self, rule: Rule) -> int:
        """Bytes that the busiest rank exchanges per step, if every rank sends one batch."""
        return self.balances[rule].hot_rank_bytes(self.batch * self.ranks, row_bytes=self.row_bytes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "source": self.source,
            "ranks": self.ranks,
            "lookups": self.lookups,
            "rows": self.rows or None,
            "batch": self.batch,
            "sent_share_after_dedup": self.sent_share,
            "rules": {rule.dist_type: self._row(rule) for rule in self.balances},
            "hottest_keys": [
                {"key": hot.key, "share": hot.share,
                 "owner": {rule.dist_type: rank for rule, rank in hot.owner.items()}}
                for hot in self.hottest
            ],
            "recommended": self.advice.rule.dist_type,
            "reason": self.advice.reason,
            "advice": self.advice.advice,
        }  # fmt: skip

    def _row(self, rule: Rule) -> dict[str, Any]:
        found, once = self.balances[rule], self.after_dedup[rule]
        return {
            "loads": found.loads.tolist(),
            "max_over_mean": found.max_over_mean,
            "gini": found.gini,
            "hottest_rank": found.hottest_rank,
            "hot_rank_bytes": self.hot_rank_bytes(rule),
            "max_over_mean_after_dedup": once.max_over_mean,
        }


def route_report(
    sources: Sequence[str | Path],
    ranks: int,
    rules: Sequence[Rule | int | str] | None = None,
    *,
    rows: int | None = None,
    batch: int = BATCH,
    row_bytes: int = 512,
    most: int = 5,
) -> RouteInfo:
    """Balance of key files, or of one distribution.

    Parameters
    ----------
    sources : sequence of str or path
        Key files (:class:`cuda_routing.key_files.KeyFiles`), or one of ``uniform:ROWS``,
        ``zipf:ALPHA:ROWS``, ``strided:ROWS:STEP``.
    ranks : int
    rules : sequence of rules, optional
        All rules when not given.
    rows : int, optional
        Size of the table, for key files.
    batch : int
        Lookups of one sender in a step.
    row_bytes : int
        Bytes of an embedding row as sent back.
    most : int
        How many hot keys to list.

    Raises
    ------
    RoutingError
        No such file or distribution, or a rule that needs the number of rows.
    """
    names = [str(source) for source in sources]
    offered = list(ALLOWED[:3]) if rules is None else [Rule.parse(rule) for rule in rules]
    load = parse_distribution(names[0]) if len(names) == 1 else None
    if load is not None:
        return _of_distribution(names[0], load, ranks, rules, offered, batch, row_bytes, most)
    stream = KeyFiles([Path(name) for name in names])
    found = stream_balance(stream, ranks, rules, rows=rows, batch=batch, most=most)
    return _of_stream(", ".join(names), found, ranks, offered, row_bytes)


def parse_distribution(text: str) -> KeyLoad | None:
    """Distribution named by a text such as ``zipf:1.05:1000000``; None if it names none.

    Raises
    ------
    RoutingError
        A known name with wrong numbers.
    """
    name, *numbers = text.split(":")
    makers = {"uniform": (uniform, 1), "zipf": (_zipf, 2), "strided": (strided, 2)}
    if name not in makers or not numbers:
        return None
    make, count = makers[name]
    try:
        values = [float(number) for number in numbers]
    except ValueError:
        values = []
    whole = values if name != "zipf" else values[1:]
    if len(values) != count or not all(value == int(value) for value in whole):
        raise RoutingError(f"{text!r} is not a distribution: allowed are {SPECS}")
    found: KeyLoad = make(*(v if name == "zipf" else int(v) for v in values))  # type: ignore[operator]
    return found


def _zipf(alpha: float, rows: float) -> KeyLoad:
    return zipf(int(rows), alpha)


def _of_distribution(  # noqa: PLR0913 - see route_report
    name: str,
    load: KeyLoad,
    ranks: int,
    rules: Any,
    offered: list[Rule],
    batch: int,
    row_bytes: int,
    most: int,
) -> RouteInfo:
    found = balances(load, ranks, rules)
    once, sent = after_dedup(load, batch)
    top = np.argsort(-load.shares, kind="stable")[:most]
    hottest = [_hot(int(load.keys[i]), float(load.shares[i]), found, ranks, load.rows) for i in top]
    return RouteInfo(
        name, ranks, batch, None, load.rows, found, balances(once, ranks, list(found)), sent,
        hottest, _advise(found, offered), row_bytes,
    )  # fmt: skip


def _of_stream(
    name: str, found: StreamBalance, ranks: int, offered: list[Rule], row_bytes: int
) -> RouteInfo:
    hottest = [
        _hot(key, count / found.lookups, found.balances, ranks, found.rows)
        for key, count in found.hottest
    ]
    return RouteInfo(
        name, ranks, found.batch, found.lookups, found.rows, found.balances, found.after_dedup,
        found.sent_share, hottest, _advise(found.balances, offered), row_bytes,
    )  # fmt: skip


def _advise(found: dict[Rule, Balance], offered: list[Rule]) -> Recommendation:
    """Choose among the rules; ``hash_independent`` only if it was requested by name."""
    return choose({rule: result for rule, result in found.items() if rule in offered})


def _hot(key: int, share: float, rules: Any, ranks: int, rows: int) -> HotKey:
    block = block_size_of(rows, ranks)
    return HotKey(
        key, share,
        {rule: int(owners(np.array([key]), ranks, rule, block_size=block)[0]) for rule in rules},
    )  # fmt: skip
