"""Solid-state drives of a machine, and settings of tables in key-value stores."""

from __future__ import annotations

from fractions import Fraction

from pydantic import model_validator

from milp_planner.inputs.problems import problem_at
from milp_planner.inputs.spec import Bandwidth, Bytes, Factor, Spec

SMALLEST_DRIVE = 2**20
"""A drive smaller than this, in bytes, is assumed to lack a unit."""


class Ssd(Spec):
    """The solid-state drives of one machine, which its ranks share."""

    size: Bytes
    """Bytes that may be written, over all drives of the machine."""
    bandwidth: Bandwidth
    """Bytes per second of random reads and writes of 4 KiB together, over all drives."""
    space_amplification: Factor = Fraction(5)
    """Bytes that RocksDB may occupy over bytes of live rows: its universal compaction, as
    configured by FBGEMM, lets stale rows grow to 400% of the live ones."""

    @model_validator(mode="after")
    def _has_a_unit(self) -> Ssd:
        if self.size < SMALLEST_DRIVE:
            raise problem_at(
                f"found {self.size} bytes; allowed: at least {SMALLEST_DRIVE} "
                f"(did you mean {self.size}TB?)",
                "size",
            )
        return self

    @property
    def live_bytes(self) -> int:
        """Bytes of live rows that fit: size over the amplification, rounded down."""
        return int(self.size / self.space_amplification)


class KeyValue(Spec):
    """Settings of a TorchRec table in a key-value store; each shard has a kernel of its own."""

    virtual: bool = False
    """Whether it is a virtual table: a hash table with room for ``rows`` rows, always in a
    key-value store, on SSD (mode SSD) or in host memory (mode CACHING)."""
    l2: Bytes = 0
    """Host memory of each shard for caching rows between HBM and SSD; whole GiB."""
    write_buffer: Bytes = 2 * 2**30
    """Host memory in which RocksDB collects a shard's writes before they go to SSD."""
    optimizer_in_rows: bool = False
    """Whether optimizer state is stored with the rows of a virtual table instead of in HBM."""

    @model_validator(mode="after")
    def _consistent(self) -> KeyValue:
        if self.l2 % 2**30:
            raise problem_at("allowed: whole GiB, as TorchRec's l2_cache_size counts", "l2")
        if self.optimizer_in_rows and not self.virtual:
            raise problem_at(
                "needs virtual: true; FBGEMM keeps other tables' state in HBM",
                "optimizer_in_rows",
            )
        return self
