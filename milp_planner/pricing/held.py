"""The ledger of chosen options only: what a plan holds, and which part grows with the load."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.model import Model
from milp_planner.pricing.buffers import exchanged_by
from milp_planner.pricing.enumeration import enumerations_of
from milp_planner.pricing.exchange import Links
from milp_planner.pricing.job import CODE, Job, OptionColumns, choice_code, job_of
from milp_planner.pricing.ledger import SHARD_NAMES
from milp_planner.pricing.options import Choice
from milp_planner.pricing.profile import Profile
from milp_planner.pricing.shards import shard_bytes, shards_of, staged_bytes
from milp_planner.pricing.units import FloatArray, IntArray

FOLLOW_ROWS = ("output", "send_buffer", "encoding", "gradients")
"""Entries proportional to a shard's load if its table returns an embedding for each id; the ids,
and a prefetch's buffers for them, always are."""


def option_columns(choices: Sequence[Choice], ranks: int, tables: Sequence[int]) -> OptionColumns:
    """Choices as columns; ``tables`` is the table index of each."""
    code = [choice_code(choice, ranks) for choice in choices]
    return OptionColumns(
        np.array(tables, dtype=np.int64), *np.array(code, dtype=np.int64).reshape(-1, CODE).T.copy()
    )


def bytes_job(model: Model, cluster: Cluster, profile: Profile) -> Job:
    """A job for computing bytes only, without bandwidths."""
    nowhere = Links(
        inf, inf, inf, inf, inf, inf, groups=len(cluster.row_groups), ranks=cluster.num_ranks
    )
    return job_of(model, cluster, profile, nowhere)


class Held(NamedTuple):
    """Shard entries of one option per table; rows are entries, in the order of the tables."""

    first: IntArray
    """Rows of table t are ``first[t] … first[t+1] − 1``; int64 array [tables + 1]."""
    ledger: IntArray
    """As :attr:`milp_planner.pricing.options.Entries.ledger`."""
    ddr: IntArray
    """Bytes of DDR, a staged checkpoint among them; int64 array [entries]."""
    staged: IntArray
    """The part of ``ddr`` that only a checkpoint takes; int64 array [entries]."""
    ssd: IntArray
    peak: FloatArray
    """Lookups over the mean of all shards in the worst batch, float array [entries]."""
    follows: IntArray
    """The part of the ledger proportional to ``peak``; same shape as ``ledger``."""


def held_by(model: Model, cluster: Cluster, profile: Profile, names: Sequence[str]) -> Held | None:
    """The bytes of the named options, one per table; None if a table does not offer its option.

    Parameters
    ----------
    model : Model
    cluster : Cluster
    profile : Profile
    names : sequence of str
        The chosen option of every table.
    """
    legal = enumerations_of(model, cluster)
    if any(name not in each.names for name, each in zip(names, legal, strict=True)):
        return None
    choices = [
        each.choices[each.names.index(name)] for name, each in zip(names, legal, strict=True)
    ]
    columns = option_columns(choices, cluster.num_ranks, range(len(choices)))
    job = bytes_job(model, cluster, profile)
    first, shards = shards_of(job, choices, columns)
    options = columns.at(shards.option)
    bytes_ = shard_bytes(job, options, shards, exchanged_by(job, options, shards))
    split = options.group_ranks > 1
    rows = split & ~job.tables.pooled[options.table]
    follows = np.zeros_like(bytes_.ledger)
    ids = [("inputs", split), ("prefetch", split)]
    for name, where in (*ids, *((name, rows) for name in FOLLOW_ROWS)):
        column = SHARD_NAMES.index(name)
        follows[:, column] = bytes_.ledger[:, column] * where
    staged = staged_bytes(model, bytes_.move, bytes_.ssd) * (shards.rows > 0)
    return Held(first, bytes_.ledger, bytes_.ddr, staged, bytes_.ssd, shards.peak, follows)
