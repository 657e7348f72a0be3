"""From measured peaks of HBM to what a step needs outside the embeddings."""

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
    """One measured peak."""

    plan: Plan
    name: str
    """Of the plan, in sentences."""
    rank: int
    peak: int
    """Bytes of HBM in use at the fullest moment."""


@dataclass(frozen=True)
class RankPeak:
    """A rank's measured peak beside what the ledger predicts."""

    plan: str
    rank: int
    measured: int
    predicted: int
    """Bytes that the ledger counts at its fullest moment, headroom not among them."""
    embeddings: int
    """The part of it that is embeddings and their exchange."""
    moment: str
    """That moment."""
    batch: int
    """Samples a rank."""

    @property
    def outside(self) -> int:
        """What is measured beyond the embeddings, in bytes."""
        return self.measured - self.embeddings


@dataclass(frozen=True)
class Fit(Facts):
    """What all readings say."""

    ranks: tuple[RankPeak, ...]
    outside: int
    """Bytes to reserve at the largest batch: the most that any reading leaves, in whole MiB."""
    per_sample: int
    """Bytes of it that follow each sample of a rank; 0 where all readings have one batch."""
    least: int
    """Bytes that the reading with the least leaves."""
    yaml: str
    """Lines for the model's file."""

    @property
    def spread(self) -> int:
        """Bytes between the readings with the most and the least."""
        return max(rank.outside for rank in self.ranks) - self.least


def fit_memory(readings: Iterable[Reading]) -> Fit:
    """What a step needs outside the embeddings, from peaks measured under known plans.

    Outside = measured peak − embeddings and exchange at the ledger's fullest moment; the rest of
    the step is taken to need the same at every moment. Per batch the largest reading counts. From
    the smallest to the largest batch it grows by so much a sample, at least 0; what is reserved at
    the largest batch covers every reading.

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
    """Bytes that each further sample takes, rounded down; never so many that nothing is left."""
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
