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

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from benchmarks.dlrmv4.facts import Fact, Facts, Layout
from milp_planner.errors import BadInput
from milp_planner.files import Facts as Json
from milp_planner.inputs import Cluster, Model
from milp_planner.pricing.entries import (
    FORWARD_SEND,
    MOMENTS,
    RANK_ENTRIES,
    SHARD_NAMES,
    alive,
)
from milp_planner.pricing.outside import exchange_bytes
from milp_planner.pricing.profile import load_profile
from milp_planner.pricing.shards import held_by
from milp_planner.pricing.units import BoolArray, IntArray

LEDGER_COPIES = 2
"""Copies that the ledger counts of a sequence table's looked-up rows: looked up, and permuted."""
OTHERS, NOWHERE = "others", "nowhere"


class Counts(NamedTuple):
    """Copies of sequences' looked-up rows, and a codec's further bytes over them."""

    copies: int
    encoding: float


@dataclass(frozen=True)
class RankBytes:
    """Bytes of the embeddings on one rank."""

    moments: dict[str, dict[str, int]]
    """Entries of the ledger at each moment of a step."""
    rows: float
    """Embeddings that the rank returns, in full rows."""

    @property
    def need(self) -> int:
        """Bytes at the fullest moment."""
        return max(sum(entries.values()) for entries in self.moments.values())

    @property
    def before_encoding(self) -> int:
        """Bytes in use when the codec asks for its memory."""
        entries = self.moments[FORWARD_SEND]
        return sum(entries.values()) - entries["encoding"]


@dataclass(frozen=True, eq=False)
class Rank:
    """One rank of a run: its shards' entries in the ledger."""

    name: str
    model: str
    ledger: IntArray
    follows: IntArray
    """The part of ``ledger`` that follows the busiest rank's load; int64 [shards, entries] both."""
    sequence: BoolArray
    exchanged: dict[str, int]
    """Entries of the exchange on every rank."""
    row: int
    """Bytes of a full row of the widest table."""

    def bytes(self, counts: Counts, rows: int | None = None) -> RankBytes:
        """Entries under a hypothesis, with this many rows returned, or as in the worst batch.

        Raises
        ------
        BadInput
            When the rank cannot return these rows.
        """
        ledger = self.ledger.astype(np.float64)
        if rows is not None:
            ledger += (self._scale(rows) - 1) * self.follows
        put = dict(zip(SHARD_NAMES, ledger.T, strict=True))
        fewer = np.where(self.sequence, LEDGER_COPIES - counts.copies, 0) * put["output"]
        put["send_buffer"] -= fewer
        put["gradients"] -= np.where(put["gradients"] > 0, fewer, 0)
        put["encoding"][:] = np.where(put["encoding"] > 0, counts.encoding * put["output"], 0)
        sums = ledger.sum(axis=0).round().astype(int).tolist()
        own = dict(zip(SHARD_NAMES, sums, strict=True))
        moments = {moment: self._alive(own, moment) for moment in MOMENTS}
        return RankBytes(moments, own["output"] / self.row)

    def _alive(self, own: dict[str, int], moment: str) -> dict[str, int]:
        here = zip(SHARD_NAMES, alive(moment).tolist(), strict=True)
        kept = {entry.name: self.exchanged[entry.name] * (moment in entry.moments)
                for entry in RANK_ENTRIES}  # fmt: skip
        return {name: own[name] * lives for name, lives in here} | kept

    def _scale(self, rows: int) -> float:
        """Factor on what follows the load at which the outputs are these rows."""
        column = SHARD_NAMES.index("output")
        whole, moving = (int(part[:, column].sum()) for part in (self.ledger, self.follows))
        if not moving:
            raise BadInput(f"{self.name}: rows need a row-wise sequence table in the layout")
        scale = 1 + (rows * self.row - whole) / moving
        if scale < 0:
            raise BadInput(f"{self.name}: {self.model} returns more than {rows:,} rows without it")
        return scale


def rank_of(model: Model, fact: Fact, layout: Layout) -> Rank:
    """The rank of a fact, with a full shard of every table in its layout.

    Raises
    ------
    BadInput
        For a table or a sharding that the model does not offer.
    """
    data = model.to_dict()
    data["workload"] |= {"batch_per_rank": fact.batch, "codec": fact.codec, "dedup": fact.dedup}
    varied = Model.from_dict(data, model.name)
    names = [table.name for table in model.tables]
    for name in layout.keys() - {*names, OTHERS}:
        raise BadInput(f"{fact.name}: the model {model.name} has no table {name!r}")
    options = [layout.get(name, layout.get(OTHERS, NOWHERE)) for name in names]
    site = _site(fact.ranks)
    named = [f"{'row_wise' if option == NOWHERE else option}/HBM_ONLY" for option in options]
    held = held_by(varied, site, load_profile(site.profile), named)
    if held is None:
        asked = ", ".join(sorted({*options} - {NOWHERE}))
        raise BadInput(
            f"{fact.name}: {model.name} does not offer one of {asked} in HBM on {fact.ranks} ranks"
        )
    there = np.flatnonzero([option != NOWHERE for option in options])
    rows = held.first[:-1][there]
    return Rank(
        fact.name, model.name, held.ledger[rows], held.follows[rows],
        np.array([table.output == "sequence" for table in model.tables])[there],
        exchange_bytes(varied, fact.ranks),
        max(table.dim * table.element_bytes for table in model.tables),
    )  # fmt: skip


def _site(ranks: int) -> Cluster:
    """Ranks of one machine: bytes do not depend on where they are."""
    return Cluster.from_dict(
        {"name": "fact", "machines": 1, "ranks_per_machine": ranks, "hbm": "1TiB", "ddr": 0,
         "profile": "torchrec-default", "interconnect": {"intra_machine": "1GB/s"}}
    )  # fmt: skip


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
