"""Terms of a measured step: calibrate writes them into a profile, and prices are made of them."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field, model_validator

from milp_planner.inputs.spec import Many, Pair, Spec
from milp_planner.inputs.table import Optimizer

Term = Annotated[float, Field(ge=0)]
Knee = Pair[Annotated[float, Field(gt=0)], Term]


class TableTerms(Spec):
    """Seconds of one pass over one table in a step: a lookup, or gradient and update."""

    seconds: Term = 0.0
    """Dispatch, once per table and step."""
    hidden_dispatch: bool = False
    """Whether dispatch goes on beside the device's work, as on a GPU: a table then takes the longer
    of ``seconds`` and all terms below, not their sum."""
    step_seconds: Term = 0.0
    """Dispatch, once per step, however many tables there are. It is the same under every plan, so
    only a predicted step includes it, not a plan's price."""
    start_seconds: Term = 0.0
    """Of ``step_seconds``, what the device itself takes: starting its kernels."""
    id_seconds: Term = 0.0
    """For every id."""
    byte_seconds: Term = 0.0
    """For every byte of the rows it reads, wherever they are."""
    missed: Many[Knee] = ()
    """Pairs (bytes of a cache, seconds) by rising size: the additional cost of every byte of a row
    that is not in a cache of that size, which all tables of the rank share."""
    row_bytes: Term = 0.0
    """Further bytes charged for a missed row, for starting to read it."""
    output_byte_seconds: Term = 0.0
    """For every byte of the outputs, or of their gradient."""
    output_seconds: Term = 0.0
    """For every row of the outputs."""
    distinct_seconds: Term = 0.0
    """For every distinct row of the step."""
    distinct_byte_seconds: Term = 0.0
    """For every byte of the distinct rows."""
    hottest_seconds: Term = 0.0
    """For every id of the table's most popular row, whose gradients a GPU adds one after another
    while those of other rows go on side by side."""

    @model_validator(mode="after")
    def _rising(self) -> TableTerms:
        if any(b[0] <= a[0] for a, b in pairwise(self.missed)):
            raise ValueError("missed must be sorted by rising size; allowed: every size once")
        return self


class BatchTerms(Spec):
    """Seconds of a step apart from its tables: MLPs, joining outputs, their gradients.

    They are the same under every plan, so only a predicted step includes them, not a plan's
    objective.
    """

    seconds: Term = 0.0
    """Dispatch, once per step."""
    table_seconds: Term = 0.0
    """For every table joined."""
    sample_seconds: Term = 0.0
    """For every sample."""
    column_seconds: Term = 0.0
    """For every sample and column of the joined embeddings."""
    spilled: Knee = (1.0, 0.0)
    """Bytes of a cache, and seconds for every byte of the joined embeddings beyond it."""

    def of(self, samples: float, tables: int, columns: int, element: int = 4) -> float:
        """Seconds of a step of ``samples`` samples, with ``columns`` columns of joined outputs."""
        cache, spilled = self.spilled
        return (
            self.seconds
            + tables * self.table_seconds
            + samples * (self.sample_seconds + columns * self.column_seconds)
            + max(samples * columns * element - cache, 0.0) * spilled
        )


class StepModel(Spec):
    """What a step costs on the measured machine, table by table."""

    tier: Literal["hbm", "ddr"]
    """Memory of the measured tables: HBM, or DDR of a machine without HBM. Tables in it are priced
    by these terms, others by bandwidths."""
    fused: bool = False
    """Whether FBGEMM's tables were measured. dynamicemb's, which are others, are then priced by
    bandwidths."""
    lookup: TableTerms
    """Forward."""
    update: dict[Optimizer, TableTerms] = Field(default_factory=dict)
    """Gradient and update of the rows, by optimizer. A missing one is interpolated between others
    by the state it keeps (except SGD, which does not merge a row's gradients)."""
    batch: BatchTerms | None = None
    """The rest of the step, outside the tables."""
    error: Annotated[dict[str, Term], Field(default_factory=dict)]
    """Median relative error of the fit over the measured steps, by part."""
    origin: str
    """What was measured, and what was left out."""

    @property
    def sizes(self) -> tuple[float, ...]:
        """Sizes of all caches in the tables' terms, rising."""
        terms = (self.lookup, *self.update.values())
        return tuple(sorted({size for each in terms for size, _ in each.missed}))
