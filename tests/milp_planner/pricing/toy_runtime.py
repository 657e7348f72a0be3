"""A runtime in one file: whole tables in HBM, a mark of one byte beside each row, no state."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from milp_planner.inputs.constraints import Mode, ShardingType
from milp_planner.pricing.job import Job, OptionColumns, ShardColumns
from milp_planner.pricing.runtimes.room import Rows, Runtime
from milp_planner.pricing.site import Site, TableTraits


class Toy(Runtime):
    """Tables that one rank holds whole."""

    name = "toy"
    allowed = "toy tables are table_wise in HBM_ONLY"

    def sharding_types(self, traits: TableTraits) -> tuple[tuple[ShardingType, ...], str]:
        """One."""
        return ("table_wise",), "toy tables are table_wise only"

    def modes(self, traits: TableTraits, site: Site) -> Iterator[tuple[Mode, Fraction]]:
        """HBM."""
        yield "HBM_ONLY", Fraction(1)

    def rows(self, job: Job, options: OptionColumns, shards: ShardColumns) -> Rows:
        """Elements and marks."""
        weights = shards.rows * shards.columns * job.tables.element[options.table]
        nothing = np.zeros_like(weights)
        return Rows({"weights": weights, "metadata": shards.rows}, nothing, nothing, weights)

    def kernel(self, sharding: str, mode: str, cpu_only: bool, virtual: bool) -> str:
        """Its own."""
        return "toy_kernel"


RUNTIME = Toy()
