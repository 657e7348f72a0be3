"""Published skew of production-like tables, as access statistics."""

from __future__ import annotations

import numpy as np

from milp_planner.inputs.access import Histogram, Unknown
from milp_planner.inputs.model import Model

LOOKUPS = {
    "dlrm-2021": (0.056, 0.043, 0.075, 0.099, 0.112, 0.091, 0.064, 0.052, 0.049, 0.05, 0.054,
                  0.058, 0.061, 0.052, 0.038, 0.026, 0.02),
    "dlrm-2022": (0.027, 0.023, 0.04, 0.068, 0.105, 0.12, 0.099, 0.07, 0.059, 0.054, 0.04, 0.071,
                  0.064, 0.047, 0.021, 0.017, 0.075),
}  # fmt: skip
"""Share of a batch's lookups by how often their row is looked up in the batch: once, twice, 3–4,
5–8, … 16,385–32,768, more. All tables together (856 of 2021 at batch 65,536, 788 of 2022 at batch
131,072). Source: facebookresearch/dlrm_datasets (MIT), ``embedding_bag/{2021,2022}``,
``locality_stats.txt`` at 6f46ba7, files ``…_15.pt``; batches of a year differ in the third
decimal at most."""

REUSE = np.array([1.0, 2.0, 3.4, *(1.44 * 2.0**i for i in range(2, 15)), 1.44 * 2.0**15])
"""Mean lookups of a row in each class: the fitted part. They give 7.5 and 12.5 lookups a row
where the source states 7.6 and 12.7, and its share of rows in each class to 0.01."""


def published(name: str) -> Histogram:
    """Rows in classes of equal popularity, of the rows that one batch touches."""
    lookups = np.array(LOOKUPS[name])
    rows = lookups / REUSE
    rows, lookups = rows / rows.sum(), lookups / lookups.sum()
    bins = tuple(zip(rows.tolist(), lookups.tolist(), strict=True))
    return Histogram(kind="histogram", bins=bins)


def with_skew(model: Model, name: str) -> Model:
    """The model with published skew on every table that has no statistics of its own."""
    access = published(name)
    tables = tuple(
        table.model_copy(
            update={"access": access.model_copy(update=_measured(table.access))}
        )
        if isinstance(table.access, Unknown)
        else table
        for table in model.tables
    )  # fmt: skip
    return model.model_copy(update={"tables": tables})


def _measured(access: Unknown) -> dict[str, object]:
    """What was measured of the table stays."""
    return {"unique_fraction": access.unique_fraction, "measured_skew": access.measured_skew}
