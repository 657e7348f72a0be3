"""HBM that a step needs outside the embeddings, fitted to measured peaks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from milp_planner.errors import BadInput
from milp_planner.files import Facts
from milp_planner.plans.ledger import PlaceBytes, ledger_of
from milp_planner.plans.placement import Plan
from milp_planner.pricing.outside import OUTSIDE

MIB = 2**20


class Reading(NamedTuple):
    """One measured peak of HBM."""

    plan: Plan
    name: str
    """The plan's name in messages."""
    rank: int
    peak: int
    """Bytes of HBM in use at the fullest moment."""


@dataclass(frozen=True)
class RankPeak:
    """A rank's measured peak next to the ledger's prediction."""

    plan: str
    rank: int
    measured: int
    predicted: int
    """Bytes that the ledger counts at its fullest moment, without headroom."""
    embeddings: int
    """The part of ``predicted`` for embeddings and their exchange."""
    moment: str
    """The ledger's fullest moment."""
    batch: int
    """Samples per rank."""

    @property
    def outside(self) -> int:
        """Measured bytes beyond embeddings and exchange."""
        return self.measured - self.embeddings


@dataclass(frozen=True)
class Fit(Facts):
    """The fit to all readings."""

    ranks: tuple[RankPeak, ...]
    outside: int
    """Bytes to reserve at the largest batch: the largest need of any reading, in whole MiB."""
    per_sample: int
    """Bytes of it that grow with each sample per rank; 0 if all readings have the same batch."""
    least: int
    """The smallest need of any reading, in bytes."""
    yaml: str
    """Lines for the model's file."""

    @property
    def spread(self) -> int:
        """Difference in bytes between the largest and the smallest need of a reading."""
        return max(rank.outside for rank in self.ranks) - self.least


def fit_memory(readings: Iterable[Reading]) -> Fit:
    """Fit the memory that a step needs outside the embeddings to peaks measured under known plans.

    Outside = measured peak − embeddings and exchange at the ledger's fullest moment; the rest of
    the step is assumed to need the same at every moment. Per batch, the largest reading counts.
    ``per_sample`` is the growth from the smallest to the largest batch, at least 0. The reservation
    at the largest batch covers every reading.

    Raises
    ------
    BadInput
        Without a reading, for a rank that the plan does not have, for a plan whose ledger is not
        known, and for a peak below the embeddings alone.
    """
    ranks = tuple(_peak(reading) for reading in readings)
    if not ranks:
        raise BadInput("no measured peak; allowed: one or more")
    most = max(rank.batch for rank in ranks)
    slope = _per_sample(ranks)
    largest = -(-max(rank.outside + slope * (most - rank.batch) for rank in ranks) // MIB)
    yaml = f"outside_embeddings:\n  measured_peak: {largest}MiB\n"
    if slope:
        yaml += f"  measured_batch: {most}\n  activation_bytes_per_sample: {slope}\n"
    return Fit(ranks, largest * MIB, slope, min(rank.outside for rank in ranks), yaml)


def _per_sample(ranks: Sequence[RankPeak]) -> int:
    """Bytes per further sample, rounded down, and capped so that something is left at batch 0."""
    least, most = (pick(rank.batch for rank in ranks) for pick in (min, max))
    if least == most:
        return 0
    low, high = (max(r.outside for r in ranks if r.batch == batch) for batch in (least, most))
    return max(0, min((high - low) // (most - least), high // most))


def _peak(reading: Reading) -> RankPeak:
    place = _place(reading)
    within = sum(bytes_ for name, bytes_ in place.entries.items() if name not in OUTSIDE)
    if reading.peak < within:
        raise BadInput(
            f"{reading.name}, rank {reading.rank}: a peak of {reading.peak:,} bytes is less than "
            f"its embeddings and their exchange take at {place.moment}, {within:,}; was it "
            "measured over a whole step of this plan?"
        )
    batch = reading.plan.model.workload.batch_per_rank
    peak = reading.peak
    return RankPeak(reading.name, reading.rank, peak, place.used, within, place.moment, batch)


def _place(reading: Reading) -> PlaceBytes:
    ledger = ledger_of(reading.plan)
    if ledger is None:
        raise BadInput(f"{reading.name}: its bytes are not this version's; plan again")
    places: Sequence[PlaceBytes] = ledger.hbm
    if reading.rank >= len(places):
        allowed = f"ranks 0 to {len(places) - 1}" if places else "a cluster with HBM"
        raise BadInput(f"{reading.name}: found rank {reading.rank}; allowed: {allowed}")
    return places[reading.rank]
