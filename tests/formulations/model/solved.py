"""Build a model over a partition and solve it: shared by the tests of this folder."""

import numpy as np

from formulations.clock import Limits
from formulations.cpsat import Answer, solve_cpsat
from formulations.instance import Instance, IntArray
from formulations.model.build import Model, build
from formulations.model.partition import Partition, by_rank
from formulations.model.parts import Parts


def pooled(instance: Instance) -> Partition:
    """All ranks in one cell."""
    cells, groups = (np.zeros(n, dtype=int) for n in (instance.num_ranks, len(instance.machines)))
    return Partition(instance, cells, groups, np.ones(1, dtype=bool))


def solved(
    instance: Instance, partition: Partition | None = None, parts: Parts | None = None
) -> tuple[Model, Answer]:
    """The model (by rank unless said otherwise) and CP-SAT's answer to it."""
    model = build(instance, partition or by_rank(instance), parts)
    return model, solve_cpsat(model.linear, Limits(seconds=20))


def broken_rows(model: Model, values: IntArray) -> list[tuple[object, ...]]:
    """Names of the rows that values do not satisfy."""
    matrix = model.linear.matrix()
    row = np.repeat(np.arange(model.linear.num_rows), np.diff(matrix.start))
    activity = np.zeros(model.linear.num_rows, dtype=np.int64)
    np.add.at(activity, row, matrix.coefficient * values[matrix.column])
    bad = (activity < matrix.low) | (activity > matrix.high)
    return [model.linear.name(r) for r in np.flatnonzero(bad).tolist()]
