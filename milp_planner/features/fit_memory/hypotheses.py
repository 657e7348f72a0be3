"""Hypotheses about a rank's memory, held against facts: which explain which, and at what price.

A hypothesis fixes what the code does (copies of the looked-up rows, a codec's share, which layout
ran). One unknown is left, the bytes outside the embeddings, and every fact is an interval of it:

- it ran: outside ≤ cap − embeddings;
- it ran out of memory: outside > cap − embeddings; on a request of the codec's, outside > cap −
  (what is in use before) − request, and the rank was not full before it;
- it used from p to q bytes: p − embeddings ≤ outside ≤ q − embeddings.

The fitted outside lies in as many intervals as any value does; facts whose intervals it misses
refute the hypothesis, by the bytes that are missing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from milp_planner.features.fit_memory.facts import Fact, Facts
from milp_planner.features.fit_memory.predict import Counts, Rank, RankBytes, rank_of
from milp_planner.files import Facts as Json
from milp_planner.inputs import Model


class Interval(NamedTuple):
    """Values of the outside, in bytes, both ends included."""

    low: int
    high: int

    def gap(self, value: int) -> int:
        """Bytes by which a value misses the interval; 0 inside it."""
        return max(self.low - value, value - self.high, 0)


NO_LIMIT = 2**62


@dataclass(frozen=True)
class Hypothesis:
    """What is assumed: copies of looked-up rows, each codec's share, the layouts that ran."""

    copies: int
    encoding: Mapping[str, float]
    layouts: Mapping[str, str]

    def counts(self, fact: Fact) -> Counts:
        """Copies and codec's share in a fact."""
        return Counts(self.copies, self.encoding[fact.codec])

    def __str__(self) -> str:
        factors = (f"{codec} x{1 + share:g}" for codec, share in self.encoding.items())
        parts = [f"{self.copies} {'copy' if self.copies == 1 else 'copies'}", *factors]
        return ", ".join([*parts, *(f"{name}: {each}" for name, each in self.layouts.items())])


@dataclass(frozen=True)
class Judgement:
    """One fact under one hypothesis."""

    fact: str
    embeddings: int
    """Bytes of the embeddings and their exchange, at the least rows that the fact allows."""
    interval: Interval
    """Bytes outside with which the hypothesis explains the fact."""
    missed_by: int
    """Bytes between the fitted outside and the interval; 0 where the fact is explained."""


@dataclass(frozen=True)
class Verdict(Json):
    """One hypothesis: the outside that explains most facts, and each fact."""

    hypothesis: str
    outside: Interval
    judgements: tuple[Judgement, ...]

    @property
    def reserved(self) -> int:
        """The largest fitted outside; the least, where no fact says how much there was at most."""
        return self.outside.low if self.outside.high == NO_LIMIT else self.outside.high

    @property
    def refuted_by(self) -> tuple[str, ...]:
        """Names of the facts that no outside explains together with the others."""
        return tuple(each.fact for each in self.judgements if each.missed_by)


@dataclass(frozen=True)
class Evidence(Json):
    """All hypotheses; the first explains most."""

    verdicts: tuple[Verdict, ...]
    chosen: Verdict
    """Of those that explain most facts, the one that needs most memory in the facts together."""
    yaml: str
    """Lines for the model's file: the chosen hypothesis' largest outside."""


def weigh(facts: Facts, model: Model) -> Evidence:
    """Hold every hypothesis against every fact.

    Raises
    ------
    BadInput
        For a layout that the model does not offer.
    """
    ranks = ranks_of(facts, model)
    verdicts = [judge(facts, ranks, each) for each in hypotheses(facts)]
    verdicts.sort(key=lambda v: len(v.refuted_by))
    fewest = len(verdicts[0].refuted_by)
    best = [each for each in verdicts if len(each.refuted_by) == fewest]
    chosen = max(best, key=_needs)
    mib = chosen.reserved // 2**20
    yaml = f"outside_embeddings:\n  measured_peak: {mib}MiB\n"
    return Evidence(tuple(verdicts), chosen, yaml)


def _needs(verdict: Verdict) -> int:
    return sum(each.embeddings + verdict.reserved for each in verdict.judgements)


def hypotheses(facts: Facts) -> Iterator[Hypothesis]:
    """Every combination of the assumptions, in their order."""
    assume = facts.assume
    codecs, choices = list(assume.encoding), list(assume.layouts)
    for copies in assume.copies:
        for shares in itertools.product(*assume.encoding.values()):
            for layouts in itertools.product(*assume.layouts.values()):
                yield Hypothesis(
                    copies,
                    dict(zip(codecs, shares, strict=True)),
                    dict(zip(choices, layouts, strict=True)),
                )


def ranks_of(facts: Facts, model: Model) -> dict[tuple[str, str], Rank]:
    """The rank of every fact under every layout that may have run, by their names."""
    return {
        (fact.name, layout): rank_of(model, fact, facts.layouts[layout])
        for fact in facts.facts
        for layout in facts.assume.layouts.get(fact.layout, (fact.layout,))
    }


def judge(facts: Facts, ranks: Mapping[tuple[str, str], Rank], hypothesis: Hypothesis) -> Verdict:
    """Fit the outside to the facts under one hypothesis."""
    found = [_interval(ranks, fact, hypothesis) for fact in facts.facts]
    fitted = common([interval for interval, _ in found])
    judgements = tuple(
        Judgement(fact.name, need, interval, interval.gap(_nearest(fitted, interval)))
        for fact, (interval, need) in zip(facts.facts, found, strict=True)
    )
    return Verdict(str(hypothesis), fitted, judgements)


def _nearest(fitted: Interval, interval: Interval) -> int:
    """The fitted value nearest to an interval."""
    return min(max(interval.low, fitted.low), fitted.high)


def _interval(
    ranks: Mapping[tuple[str, str], Rank], fact: Fact, hypothesis: Hypothesis
) -> tuple[Interval, int]:
    """Outside that explains a fact, and its embeddings at the least rows that it allows."""
    rank = ranks[fact.name, hypothesis.layouts.get(fact.layout, fact.layout)]
    few, many = (rank.bytes(hypothesis.counts(fact), rows) for rows in (fact.rows or (None, None)))
    return explains(fact, few, many), few.need


def explains(fact: Fact, few: RankBytes, many: RankBytes) -> Interval:
    """Outside, from 0, with which a fact is explained by some number of rows between the two."""
    low, high = 0, NO_LIMIT
    if fact.outcome == "ok":
        high = fact.cap - few.need
    elif fact.request is not None:
        low = max(low, fact.cap - many.before_encoding - fact.request + 1)
        high = fact.cap - few.before_encoding
    else:
        low = max(low, fact.cap - many.need + 1)
    if fact.used is not None:
        low, high = max(low, fact.used[0] - many.need), min(high, fact.used[1] - few.need)
    return Interval(low, high)


def common(intervals: Sequence[Interval]) -> Interval:
    """The largest values that lie in as many intervals as any value does.

    Where nothing is possible (an interval's high end is below its low end, or below 0), the
    interval counts for no value.
    """
    starts = sorted({0, *(max(each.low, 0) for each in intervals)})

    def covers(value: int) -> int:
        return sum(each.low <= value <= each.high for each in intervals)

    low = max(starts, key=lambda value: (covers(value), value))
    high = [each.high for each in intervals if each.low <= low <= each.high]
    return Interval(low, min(high, default=low))
