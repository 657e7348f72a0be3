"""What one rank holds of the embeddings and their exchange under a hypothesis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from milp_planner.errors import BadInput
from milp_planner.features.fit_memory.facts import Fact, Layout
from milp_planner.inputs import Cluster, Model
from milp_planner.pricing.entries import (
    FORWARD_SEND,
    MOMENTS,
    RANK_ENTRIES,
    SHARD_ENTRIES,
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
        here = zip(SHARD_NAMES, alive(SHARD_ENTRIES, moment).tolist(), strict=True)
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
