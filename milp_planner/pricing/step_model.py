"""Terms of a measured step: what calibrate writes into a profile and prices are made of."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from milp_planner.inputs.spec import Spec, as_tuple
from milp_planner.inputs.table import Optimizer

Term = Annotated[float, Field(ge=0)]
Knee = Annotated[tuple[Annotated[float, Field(gt=0)], Term], BeforeValidator(as_tuple)]


class TableTerms(Spec):
    """Seconds of one pass over one table in a step: a lookup, or gradient and update."""

    seconds: Term = 0.0
    """Dispatch: once a table and step."""
    step_seconds: Term = 0.0
    """Dispatch: once a step, however many tables there are. In no plan's price, as it is the same
    under every plan; in a predicted step."""
    id_seconds: Term = 0.0
    """For every id."""
    byte_seconds: Term = 0.0
    """For every byte of the rows it asks for, wherever they lie."""
    missed: Annotated[tuple[Knee, ...], BeforeValidator(as_tuple)] = ()
    """Pairs (bytes of a cache, seconds) by rising size: what every byte of a row costs in addition
    if a cache of that size, which all tables of the rank share, does not hold the row."""
    row_bytes: Term = 0.0
    """Bytes that a row counts as having beyond its own where it is missed: starting to read it."""
    output_byte_seconds: Term = 0.0
    """For every byte of the outputs, or of their gradient."""
    distinct_seconds: Term = 0.0
    """For every distinct row of the step."""
    distinct_byte_seconds: Term = 0.0
    """For every byte of those."""

    @model_validator(mode="after")
    def _rising(self) -> TableTerms:
        if any(b[0] <= a[0] for a, b in pairwise(self.missed)):
            raise ValueError("missed must come by rising size; allowed: every size once")
        return self


class BatchTerms(Spec):
    """Seconds of a step apart from its tables: MLPs, joining outputs, their gradients.

    The same whatever the plan is, so no plan's objective has it; a predicted step does.
    """

    seconds: Term = 0.0
    """Dispatch: once a step."""
    table_seconds: Term = 0.0
    """For every table joined."""
    sample_seconds: Term = 0.0
    """For every sample."""
    column_seconds: Term = 0.0
    """For every sample and column of the joined embeddings."""
    spilled: Knee = (1.0, 0.0)
    """Bytes of a cache, and seconds for every byte of the joined embeddings beyond it."""

    def of(self, samples: float, tables: int, columns: int, element: int = 4) -> float:
        """Seconds of a step of so many samples, whose tables' outputs have so many columns."""
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
    """Where the measured tables lay: device memory, or that of a machine without any. Tables there
    are priced by these terms, others by bandwidths."""
    lookup: TableTerms
    """Forward."""
    update: dict[Optimizer, TableTerms] = Field(default_factory=dict)
    """Gradient and update of the rows, by optimizer. One that is missing is priced between those
    around it by the state it keeps (SGD apart, which does not merge a row's gradients)."""
    batch: BatchTerms | None = None
    """All of a step that is not a table's."""
    error: Annotated[dict[str, Term], Field(default_factory=dict)]
    """Median relative error of the fit over the measured steps, by part."""
    origin: str
    """What was measured, and what was left out."""

    @property
    def sizes(self) -> tuple[float, ...]:
        """Sizes of all caches that the tables' terms speak of, rising."""
        terms = (self.lookup, *self.update.values())
        return tuple(sorted({size for each in terms for size, _ in each.missed}))
