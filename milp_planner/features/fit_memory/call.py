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

    @property
    def outside(self) -> int:
        """What is measured beyond the embeddings, in bytes."""
        return self.measured - self.embeddings


@dataclass(frozen=True)
class Fit(Facts):
    """What all readings say."""

    ranks: tuple[RankPeak, ...]
    outside: int
    """Bytes to reserve: the largest that any reading leaves, in whole MiB."""
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
    the step is taken to need the same at every moment. The largest of all readings is reserved.

    Raises
    ------
    BadInput
        Without a reading, for a rank that the plan does not have, for a plan whose ledger is not
        known, and for a peak below the embeddings alone.
    """
    ranks = tuple(_peak(reading) for reading in readings)
    if not ranks:
        raise BadInput("no measured peak; allowed: one or more")
    outside = [rank.outside for rank in ranks]
    largest = -(-max(outside) // MIB)
    yaml = f"outside_embeddings:\n  measured_peak: {largest}MiB\n"
    return Fit(ranks, largest * MIB, min(outside), yaml)


def _peak(reading: Reading) -> RankPeak:
    place = _place(reading)
    within = sum(bytes_ for name, bytes_ in place.entries.items() if name not in OUTSIDE)
    if reading.peak < within:
        raise BadInput(
            f"{reading.name}, rank {reading.rank}: a peak of {reading.peak:,} bytes is less than "
            f"its embeddings and their exchange take at {place.moment}, {within:,}; was it "
            "measured over a whole step of this plan?"
        )
    return RankPeak(reading.name, reading.rank, reading.peak, place.used, within, place.moment)


def _place(reading: Reading) -> PlaceBytes:
    ledger = ledger_of(reading.plan)
    if ledger is None:
        raise BadInput(f"{reading.name}: its bytes are not this version's; plan again")
    places: Sequence[PlaceBytes] = ledger.hbm
    if reading.rank >= len(places):
        allowed = f"ranks 0 to {len(places) - 1}" if places else "a cluster with HBM"
        raise BadInput(f"{reading.name}: found rank {reading.rank}; allowed: {allowed}")
    return places[reading.rank]
