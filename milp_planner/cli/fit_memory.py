"""``milp-planner fit-memory``: memory that a step needs outside the embeddings, from peaks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from milp_planner.cli import console
from milp_planner.cli.options import JsonOption, argument
from milp_planner.errors import BadInput

if TYPE_CHECKING:
    from rich.console import RenderableType

    from milp_planner.features.fit_memory import Fit, Reading
    from milp_planner.plans.placement import Plan

FORM = "PLAN:RANK=SIZE"


def run(
    peaks: Annotated[
        list[str],
        argument(
            FORM,
            "A plan.json, one of its ranks and the peak of HBM measured there, for example "
            "plan.json:0=187.2GiB: torch.cuda.max_memory_allocated over some steps, or what "
            "nvidia-smi shows, library context included. One or more.",
        ),
    ],
    json: JsonOption = False,
) -> None:
    """Fit the memory that a step needs outside the embeddings to measured peaks.

    Compares measured with predicted peaks, and prints the reservation that covers all of them, as
    lines for the model's file.
    """
    from milp_planner.features.fit_memory import fit_memory

    fit = fit_memory(_readings(peaks))
    console.tell(json, fit.to_dict, lambda: draw(fit))


def _readings(peaks: list[str]) -> list[Reading]:
    """Parse the peaks; every plan is read once."""
    from milp_planner.features.fit_memory import Reading
    from milp_planner.plans.plan_file import read_plan

    plans: dict[str, Plan] = {}
    found = []
    for text in peaks:
        place, equals, size = text.rpartition("=")
        name, colon, rank = place.rpartition(":")
        if not (equals and colon and name and rank.isascii() and rank.isdecimal()):
            raise BadInput(f"found {text!r}; allowed: {FORM}, such as plan.json:0=187.2GiB")
        peak = measured(text, size)
        plan = plans.get(name) or plans.setdefault(name, read_plan(Path(name)))
        found.append(Reading(plan, name, int(rank), peak))
    return found


def measured(text: str, size: str) -> int:
    """Parse a measured size, rounded to bytes, as 187.2GiB is no whole number of them.

    ``text`` is the whole argument, for the error message.
    """
    try:
        return _bytes(size)
    except ValueError as error:
        raise BadInput(f"{text}: {error}") from None


def _bytes(size: str) -> int:
    from milp_planner.inputs.quantities import parse_bytes, parse_fraction

    unit = size.strip().lstrip("0123456789._").strip()
    number = size.strip().removesuffix(unit).strip()
    if not (unit and number):
        return parse_bytes(size)
    return round(parse_fraction(number, "a size such as 187.2GiB") * parse_bytes(f"1{unit}"))


def draw(fit: Fit) -> list[RenderableType]:
    """Draw measured and predicted peaks, and the lines to paste."""
    from milp_planner.drawing.grid import Cell, Cells, Grid
    from milp_planner.drawing.units import show_bytes

    rows: list[Cells] = [
        (
            rank.plan,
            str(rank.rank),
            *map(Cell.amount, (rank.measured, rank.predicted)),
            f"{rank.predicted / rank.measured - 1:+.1%}" if rank.measured else "",
            *map(Cell.amount, (rank.embeddings, rank.outside)),
        )
        for rank in fit.ranks
    ]
    head = ("plan", "#rank", "#measured", "#predicted", "#error", "#embeddings", "#outside")
    table = Grid.plain(head, rows, {"plan": 20})
    least, spread = show_bytes(fit.least), show_bytes(fit.spread)
    most = show_bytes(fit.least + fit.spread)
    left = f"outside the embeddings: {least} to {most}, {spread} apart; in the model's file:"
    return [table, left, fit.yaml.rstrip()]
