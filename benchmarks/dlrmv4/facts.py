"""Facts about runs of a job, and what may be assumed about their memory: the file and its checks.

A fact says what one rank held (its layout), how it was run, and how that ended: it ran, it ran out
of memory, or it used so much. ``facts.yaml`` holds DLRMv4's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from milp_planner.inputs.files import build, read_document
from milp_planner.inputs.model import Codec
from milp_planner.inputs.problems import problem_at
from milp_planner.inputs.spec import Bytes, Count, Spec, as_tuple

Name = Annotated[str, Field(min_length=1)]


def _range(value: Any) -> Any:
    """A single value stands for a range of one."""
    return as_tuple(value) if isinstance(value, list | tuple) else (value, value)


CountRange = Annotated[tuple[Count, Count], BeforeValidator(_range)]
BytesRange = Annotated[tuple[Bytes, Bytes], BeforeValidator(_range)]
Layout = dict[Name, Name]
"""Sharding of the tables that a rank holds a part of, such as ``column_wise:4``, or
``nowhere``; ``others`` stands for all tables that are not named."""


class Fact(Spec):
    """What a run did to one rank's memory."""

    name: Name
    source: Name
    """Where it was published."""
    layout: Name
    """What the rank holds: one of the layouts, or of the choices among them."""
    ranks: Annotated[int, Field(ge=2)]
    cap: Bytes
    """HBM of the rank."""
    outcome: Literal["ok", "out of memory"]
    batch: Count
    """Samples per rank."""
    codec: Codec
    dedup: bool
    rows: CountRange | None = None
    """Embeddings that the rank returned in the step, in full rows, or from and to; by default the
    model's worst batch."""
    request: Bytes | None = None
    """Bytes of the codec's allocation that failed."""
    used: BytesRange | None = None
    """Bytes in use at the fullest moment, from and to."""
    doubt: str | None = None
    """Why it may not bind a hypothesis."""

    @model_validator(mode="after")
    def _agrees(self) -> Fact:
        needed = {"request": "out of memory", "used": "ok"}
        for name, outcome in needed.items():
            if getattr(self, name) is not None and self.outcome != outcome:
                raise problem_at(f"needs the outcome: {outcome}", name)
        for name in ("rows", "used"):
            low, high = getattr(self, name) or (0, 0)
            if low > high:
                raise problem_at(f"found {low} to {high}; allowed: from and to, in order", name)
        return self


AtLeastOne = Field(min_length=1, max_length=9)


class Assumptions(Spec):
    """Values to try for what is not known; every combination is a hypothesis."""

    copies: Annotated[
        tuple[Annotated[int, Field(ge=1, le=4)], ...], BeforeValidator(as_tuple), AtLeastOne
    ]
    """Copies of a sequence table's looked-up rows before they are encoded."""
    encoding: dict[
        Codec,
        Annotated[
            tuple[Annotated[float, Field(ge=0, le=16)], ...], BeforeValidator(as_tuple), AtLeastOne
        ],
    ]
    """Bytes that each codec takes besides its input, over its input."""
    layouts: dict[Name, Annotated[tuple[Name, ...], BeforeValidator(as_tuple), AtLeastOne]] = Field(
        default_factory=dict, max_length=3
    )
    """Choices among layouts, where it is not known which one ran."""


class Facts(Spec):
    """Facts of runs of one model, and the hypotheses to hold against them."""

    model: Name
    """Name or path of the model."""
    description: str = ""
    layouts: dict[Name, Layout]
    assume: Assumptions
    facts: Annotated[tuple[Fact, ...], BeforeValidator(as_tuple), Field(min_length=1)]

    @model_validator(mode="after")
    def _names(self) -> Facts:
        names = [fact.name for fact in self.facts]
        for name in names:
            if names.count(name) > 1:
                raise problem_at(f"found {name!r} twice; allowed: one fact of a name", "facts")
        for choice, layouts in self.assume.layouts.items():
            for layout in layouts:
                self._known(layout, "assume", "layouts", choice)
        for index, fact in enumerate(self.facts):
            if fact.layout not in self.assume.layouts:
                self._known(fact.layout, "facts", index, "layout")
            if fact.codec not in self.assume.encoding:
                raise problem_at(f"has no factor for {fact.codec}", "assume", "encoding")
        return self

    def _known(self, layout: str, *where: str | int) -> None:
        if layout not in self.layouts:
            allowed = ", ".join([*self.layouts, *self.assume.layouts])
            raise problem_at(f"found {layout!r}; allowed: {allowed}", *where)


def read_facts(path: str | Path) -> Facts:
    """Read a file of facts.

    Raises
    ------
    BadInput
        The file is absent or wrong; the message says where.
    """
    return build(Facts, read_document(Path(path)))
