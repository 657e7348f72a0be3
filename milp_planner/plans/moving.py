"""The moves to a plan from an earlier one; its cost with a price on every moved byte."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from formulations import Outcome
from formulations.errors import InstanceError
from formulations.evidence.verify import Claim, Verification, verify
from formulations.instance import Instance
from formulations.instance.facts import bytes_to_move
from formulations.instance.strict_json import Reader
from formulations.priced import Priced, priced
from formulations.result.check import moved_bytes, moved_tables
from formulations.result.outcome import certified_gap
from formulations.result.outcome_file import outcome_from_dict, outcome_to_dict
from milp_planner.drawing.units import NAMED, listed, show_bytes, show_cost, show_gap, show_share
from milp_planner.errors import BadInput
from milp_planner.files import Facts
from milp_planner.inputs.quantities import TIME_UNITS, parse_bytes, parse_fraction

if TYPE_CHECKING:
    from milp_planner.plans.placement import Plan


@dataclass(frozen=True)
class MovedInfo(Facts):
    """Tables and bytes that move between two plans."""

    tables: tuple[str, ...]
    """Names of the tables that move."""
    bytes: int
    """Bytes of all their shards in this plan."""
    held: int
    """Bytes, in this plan, of all tables that were there before."""
    new: tuple[str, ...]
    """Tables that were not there before; placing them moves nothing."""
    displaced: tuple[str, ...]
    """Tables that must move because their option or their ranks no longer exist."""


def moved_of(plan: Plan) -> MovedInfo | None:
    """The moves to a plan; None without a placement or an earlier plan."""
    instance, placement = plan.instance, plan.outcome.placement
    if placement is None or not instance.current:
        return None
    names, moved = instance.table_names, moved_tables(instance, placement)
    size = bytes_to_move(instance)
    before = {now.table for now in instance.current}
    return MovedInfo(
        tuple(names[table] for table in moved),
        moved_bytes(instance, placement, moved),
        int(size[placement.options[sorted(before)]].sum()),
        tuple(name for table, name in enumerate(names) if table not in before),
        tuple(names[now.table] for now in instance.current if now.option < 0),
    )


def moved_told(info: MovedInfo) -> list[str]:
    """The moves in sentences."""
    share = show_share(info.bytes, info.held) if info.held else "0%"
    sentences = [
        f"moves: {len(info.tables):,} tables, {show_bytes(info.bytes)} of "
        f"{show_bytes(info.held)} ({share})"
        + (f": {listed(info.tables, NAMED)}" if info.tables else "")
    ]
    for what, tables in (("new", info.new), ("option or ranks no longer exist", info.displaced)):
        if tables:
            sentences.append(f"{what}: {listed(tables, NAMED)}")
    return sentences


@dataclass(frozen=True, eq=False)
class Moving:
    """The same plan with a price on moves."""

    price: Fraction
    """Picoseconds per byte."""
    outcome: Outcome
    """Outcome of :func:`formulations.priced.priced` at that price: objective, bound and
    certificate."""

    def of(self, instance: Instance) -> Priced:
        """The plan's Instance with the price."""
        return priced(instance, self.price)


def parse_price(text: str) -> Fraction:
    """``1ms/GB`` or ``0.5us/MiB`` in picoseconds per byte."""
    allowed = "a time per size, such as 1ms/GB or 0.5us/MiB"
    time, slash, size = text.strip().partition("/")
    units = sorted(TIME_UNITS, key=len, reverse=True)  # all but s end in s
    unit = next((unit for unit in units if time.strip().endswith(unit)), "")
    try:
        if not slash or not unit:
            raise ValueError(f"found {text!r}; allowed: {allowed}")
        size = size.strip()
        each = parse_bytes(size if size[:1].isdigit() else f"1{size}")
        number = parse_fraction(time.strip().removesuffix(unit).strip(), allowed)
        if number < 0 or not each:
            raise ValueError(f"found {text!r}; allowed: {allowed}")
    except ValueError as error:
        raise BadInput(f"move cost {text!r}: {error}") from None
    return number * TIME_UNITS[unit] / each


def moving_to_dict(moving: Moving, instance: Instance) -> dict[str, Any]:
    """Its document in plan.json."""
    outcome = outcome_to_dict(moving.of(instance).instance, moving.outcome)
    return {"picoseconds_a_byte": str(moving.price), "outcome": outcome}


def moving_from_dict(document: Any, instance: Instance, what: str) -> Moving:
    """Read it back; BadInput or InstanceError if it is malformed."""
    reader = Reader(document, what, {"picoseconds_a_byte", "outcome"})
    try:
        price = Fraction(reader.get("picoseconds_a_byte", str))
    except (ValueError, ZeroDivisionError):
        raise BadInput(f"{what}: picoseconds_a_byte must be a fraction such as 1/1000") from None
    model = priced(instance, price).instance
    return Moving(price, outcome_from_dict(model, document["outcome"], f"{what}: outcome"))


def moving_judged(plan: Plan) -> Verification:
    """The claims about the price of moves, re-derived; their names begin with ``moves``."""
    if plan.moving is None:
        return Verification(())
    try:
        model = plan.moving.of(plan.instance)
    except InstanceError as error:
        return Verification((Claim("moves: price", False, str(error)),))
    judged = verify(model.instance, plan.moving.outcome)
    same = _same(plan, model)
    text = "it is the plan's" if same else "it differs from the plan's"
    claims = [Claim("moves: placement", same, text)]
    for claim in judged.claims:
        if claim.name != "placement" or claim.ok is False:
            claims.append(replace(claim, name=f"moves: {claim.name}"))
    return Verification(tuple(claims), judged.unchecked)


def _same(plan: Plan, model: Priced) -> bool:
    """Whether both outcomes have the same placement."""
    mine, other = plan.outcome.placement, plan.moving.outcome.placement if plan.moving else None
    if mine is None or other is None:
        return mine is other
    plain, tables = model.without_price(other), range(plan.instance.num_tables)
    return bool((plain.options == mine.options).all()) and all(
        plain.to_lists(table) == mine.to_lists(table) for table in tables
    )


def moving_told(plan: Plan) -> list[str]:
    """A sentence about the cost of the plan with its moves, and the bound on it."""
    moving = plan.moving
    if moving is None or moving.outcome.placement is None:
        return []
    model, outcome, unit = moving.of(plan.instance), moving.outcome, plan.instance.time_unit
    paid = model.paid(moving.outcome.placement)
    summary = (
        f"with moves at {show_cost(int(moving.price * 10**9), unit)} a GB: "
        f"{show_cost(outcome.objective, unit)}, of which {show_cost(paid, unit)} for moves"
    )
    if outcome.certified_bound is None:
        return [f"{summary}; nothing is certified"]
    gap = certified_gap(outcome)
    bound = "no plan is better" if not gap else (
        f"no plan is below {show_cost(outcome.certified_bound, unit)} (gap {show_gap(gap)})"
    )  # fmt: skip
    return [f"{summary}; certified: {bound}"]
