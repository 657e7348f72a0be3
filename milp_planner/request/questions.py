"""What may be asked about a plan, declared once: the parameters of ``explain``'s questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from milp_planner.inputs.problems import choice, problem_at
from milp_planner.inputs.quantities import parse_bytes
from milp_planner.request import Limits, Option
from milp_planner.request.values import Share, Target, number

POINTS, MOST_MACHINES = 12, 16
"""Points of a frontier, and most machines that *smallest* tries."""
ENOUGH_GAP = 0.005
"""Certified gap at which a point of a frontier is settled."""
MACHINES, STASH = "machines", "stash"
MOST_BUDGETS, MOST_MEMORY = 200, 2**50
"""Most budgets of one frontier, and most bytes of a budget."""
GONE = {
    "staircase": "staircase is gone: frontier answers it, with over=('hbm', 'ddr') and budgets",
    "extras": "extras is gone: budgets says which sizes, reservations included",
}
"""What replaced questions and parameters of earlier versions."""


def _parts(value: Any) -> list[Any]:
    """A list, or text with commas."""
    parts = value.split(",") if isinstance(value, str) else value
    return [each.strip() if isinstance(each, str) else each for each in parts]


def _kinds(value: Any) -> tuple[str, ...]:
    """Kinds of budgets: memories, machines, or paths of fields."""
    names = [name for name in _parts(value) if name]
    for name in names or [""]:
        if "." not in name and name not in (known := ("hbm", "ddr", "ssd", MACHINES, STASH)):
            raise ValueError(f"found {name!r}; {choice(name, known)}, or the path of a field")
    return tuple(dict.fromkeys(names))


def _budgets(value: Any, info: ValidationInfo) -> Any:
    """How many (``12``), sizes (``80GB,96GB``), numbers of machines (``1,2``), or values of a field
    (``512,×2``)."""
    if not isinstance(value, str):
        return tuple(value) if isinstance(value, Sequence) else value
    over, parts = info.data.get("over", ("hbm",)), _parts(value)
    if len(over) == 1 and "." in over[0] and value:
        return tuple(parts)
    numbers = all(part.isascii() and part.isdigit() for part in parts)
    if numbers and len(parts) == 1:
        if not 1 <= int(value) <= MOST_BUDGETS:
            raise ValueError(f"found {value!r}; allowed: 1 to {MOST_BUDGETS}, or a list")
        return int(value)
    if len(over) > 1:
        raise ValueError(f"found {value!r}: a list goes with one kind of budget, not with {over}")
    if over[0] == MACHINES:
        if not numbers or "0" in parts:
            raise ValueError(f"found {value!r}; needs numbers of machines such as 1,2,4")
        return tuple(int(part) for part in parts)
    sizes = _sizes(parts)
    if max(sizes) > MOST_MEMORY:
        raise ValueError(f"found {value!r}; needs sizes such as 64GiB,80GiB, up to 1 PiB each")
    return sizes


def _sizes(parts: Sequence[Any]) -> tuple[int, ...]:
    """Sizes such as ``10GB``, or plain whole numbers."""
    return tuple(parse_bytes(int(p) if isinstance(p, str) and p.isdigit() else p) for p in parts)


def _offers(value: Any) -> Any:
    """Clusters with the price of an hour (None: the cluster's own), as ``NAME=PRICE`` or pairs."""
    if isinstance(value, str):
        value = [part.partition("=")[::2] for part in _parts(value)]
    found = []
    for each in value:
        source, price = each if isinstance(each, list | tuple) else (each, None)
        if source == "":
            raise ValueError("found an empty name; needs clusters such as 8xa100=32.8,8xh100=98.3")
        found.append((source, None if price in (None, "") else _an_hour(source, price)))
    return tuple(found)


def _an_hour(source: Any, price: Any) -> float:
    """A price of an hour: a number above 0, in any currency."""
    try:
        found = float(price)
    except (TypeError, ValueError):
        found = 0.0
    if not 0 < found < float("inf"):
        raise ValueError(f"found {price!r} for {source}; allowed: a price above 0, such as 98.32")
    return found


class Asked(Limits):
    """Parameters of the questions of ``explain``, and how long to search for answers."""

    tables: Annotated[
        tuple[str, ...], BeforeValidator(tuple), Option("--table NAME", several=True)
    ] = ()  # fmt: skip
    """why: only this table; may be repeated."""
    alternatives: Annotated[
        int, BeforeValidator(number), Field(ge=1, le=1000), Option("--alternatives N")
    ] = 3  # fmt: skip
    """why: alternatives to show for each table; default: 3."""
    over: Annotated[tuple[str, ...], BeforeValidator(_kinds), Option("--over KINDS")] = ("hbm",)
    """frontier: hbm (of every rank), ddr, ssd (of every machine), machines, stash (of every rank),
    or the path of a field such as workload.batch_per_rank; several with commas. Default: hbm."""
    budgets: Annotated[
        tuple[int | str, ...] | int, BeforeValidator(_budgets), Option("--budgets LIST|N")
    ] = POINTS  # fmt: skip
    """frontier: number of budgets, or a list: sizes such as 64GiB,80GiB (reservations included),
    numbers of machines, or values of the field such as 512,×2. Default: 12."""
    enough: Annotated[Share, Option("--within SHARE")] = ENOUGH_GAP
    """frontier: certified gap at which a point is settled; default: 0.5%."""
    target: Annotated[Target | None, Option("--target TIME|RATE")] = None
    """smallest: objective to reach, such as 2.5ms, or a rate such as 200k samples/s; default: any
    plan."""
    clusters: Annotated[
        tuple[tuple[Any, float | None], ...], BeforeValidator(_offers), Option("--clusters LIST")
    ] = ()  # fmt: skip
    """smallest: the cheapest of these clusters instead, such as 8xa100=32.8,8xh100=98.3: names or
    files, each with the price of an hour unless it states price_per_hour itself."""
    machines: Annotated[int, Field(ge=1)] = MOST_MACHINES
    """smallest: most machines to try."""
    limits: Annotated[tuple[int, ...], Option("--limits LIST")] = (0, 1, 2, 4, 8)
    """replan: how many tables may move, or sizes such as 10GB; default: 0,1,2,4,8."""
    by: str = "tables"
    """replan: what the limits count, tables or bytes."""
    model: Annotated[Any, Option("--model MODEL")] = None
    """replan: the model, if it has changed."""
    cluster: Annotated[Any, Option("--cluster CLUSTER")] = None
    """replan: the cluster, if it has changed."""
    start: Annotated[Any, Option("--start --today PLAN")] = None
    """moves, replan: the plan you run today, in any form that audit accepts."""
    spread: Annotated[Share, Option("--spread SHARE")] = 0.2
    """sensitivity: assumed error of a price for which the profile states no spread; default:
    20%."""
    draws: Annotated[
        int, BeforeValidator(number), Field(ge=0, le=100_000), Option("--draws N")
    ] = 20  # fmt: skip
    """sensitivity: number of random draws of all prices at once; default: 20."""

    @model_validator(mode="before")
    @classmethod
    def _former(cls, data: Any) -> Any:
        """Refuse what is gone, and tell limits in tables from those in bytes."""
        if "extras" in data:
            raise ValueError(GONE["extras"])
        if "today" in data:  # its former name
            data = {"start": data["today"], **{n: v for n, v in data.items() if n != "today"}}
        if isinstance(limits := data.get("limits"), str):
            parts = _parts(limits)
            counted = all(part.isascii() and part.isdigit() for part in parts)
            try:
                found = tuple(map(int, parts)) if counted else _sizes(parts)
            except ValueError as error:
                raise problem_at(str(error), "limits") from None
            data = {**data, "limits": found, "by": "tables" if counted else "bytes"}
        return data
