"""A recommender model as the planner sees it: a workload and its embedding tables."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, field_validator

from milp_planner.inputs.spec import Spec, as_tuple
from milp_planner.inputs.table import Name, Table
from milp_planner.inputs.workload import Workload

__all__ = ["Model", "Table", "Workload"]


class Model(Spec):
    """Workload and tables; the order of the tables is kept."""

    name: Name
    """Name of the model."""
    source: str = ""
    """Where the figures come from."""
    description: str = ""
    """What the model is, and what was assumed."""
    workload: Workload
    """How the tables are used."""
    tables: Annotated[tuple[Table, ...], BeforeValidator(as_tuple)] = ()
    """The embedding tables."""

    @field_validator("tables", mode="after")
    @classmethod
    def _unique(cls, tables: tuple[Table, ...]) -> tuple[Table, ...]:
        seen: set[str] = set()
        for table in tables:
            if table.name in seen:
                raise ValueError(f"table name {table.name!r} is used twice; allowed: unique names")
            seen.add(table.name)
        return tables

    @property
    def weight_bytes(self) -> int:
        """Bytes of all weights, without optimizer state."""
        return sum(table.weight_bytes for table in self.tables)

    def table(self, name: str) -> Table:
        """The table of that name.

        Raises
        ------
        KeyError
            When there is none.
        """
        for table in self.tables:
            if table.name == name:
                return table
        raise KeyError(name)
