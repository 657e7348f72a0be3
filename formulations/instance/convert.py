"""Read a problem file as an Instance: our own format, or one from the literature, for generalised
assignment (GAP) or multiple-choice knapsack (MMKP).

GAP: assign every item to one agent, within each agent's capacity, at least cost. Its JSON:
``agents``, ``items``, ``cost[agent][item]``, ``weight[agent][item]``, ``capacity[agent]``,
``sense`` ``min`` or ``max``.

MMKP: take one item of every group, within k capacities, at most profit. Its JSON is that of a
converted public collection (Khan's I01–I07, Hiremath–Hill's sets): ``groups``,
``items_per_group``, ``resources``, ``capacity[k]``, ``profit[g][j]``, ``weight[g][j][k]``,
``sense`` ``max``.

Both may hold ``optimum`` and ``best_known``. Numbers with decimals become exact integers.

References
----------
P. C. Chu, J. E. Beasley: A genetic algorithm for the generalised assignment problem. Computers &
Operations Research 24(1), 1997, doi:10.1016/S0305-0548(96)00032-9 (the OR-Library's instances).

M. M. Akbar, M. S. Rahman, M. Kaykobad, E. G. Manning, G. C. Shoja: Solving the Multidimensional
Multiple-choice Knapsack Problem by constructing convex hulls. Computers & Operations Research
33(5), 2006, doi:10.1016/j.cor.2004.09.016.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from formulations.errors import InstanceError
from formulations.instance import MAX_VALUE, Instance, Objective, Scope, Where, strict_json
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.instance.file import FORMAT, instance_from_dict

GAP = ("agents", "items", "cost", "weight", "capacity")
MMKP = ("groups", "items_per_group", "resources", "capacity", "profit", "weight")
#: More decimals than this are refused.
MAX_DECIMALS = 6
_ALLOWED = f"allowed: {FORMAT!r}, or the MMKP and GAP layouts of docs/dp-vs-exact.md"


def read_any(path: str | Path) -> Instance:
    """Read an instance file of any known kind.

    Parameters
    ----------
    path : path
        A file (JSON, gzipped or not). Where a file holds several instances, ``FILE#NAME`` picks
        one: ``gap.json#a05100``.

    Raises
    ------
    InstanceError
        One sentence: the file, the field, what was found and what is allowed.
    """
    file, name = _split(path)
    document = _parse(file)
    if isinstance(document, dict) and "format" in document:
        if name is not None:
            raise InstanceError(f"{file}: holds one instance, so '#{name}' picks nothing")
        return instance_from_dict(document, str(file))
    found = _instances(document, file)
    if name is None and len(found) > 1:
        first = ", ".join(list(found)[:3])
        raise InstanceError(
            f"{file}: holds {len(found)} instances; pick one as {file.name}#NAME ({first}, …)"
        )
    key = next(iter(found)) if name is None else name
    if key not in found:
        near = difflib.get_close_matches(key, found, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(found)}"
        raise InstanceError(f"{file}: holds no instance {key!r}; {hint}")
    if _has_fields(found[key], GAP):
        return _gap_to_instance(found[key], f"{file}#{key}", key)
    return _mmkp_to_instance(found[key], f"{file}#{key}")


def names_in(path: str | Path) -> list[str]:
    """Names of the instances in a literature file; empty for our own format.

    Raises
    ------
    InstanceError
        For a file of no known kind.
    """
    document = _parse(Path(path))
    if isinstance(document, dict) and "format" in document:
        return []
    return list(_instances(document, Path(path)))


def _split(path: str | Path) -> tuple[Path, str | None]:
    if Path(path).exists() or "#" not in str(path):
        return Path(path), None
    file, name = str(path).split("#", 1)
    return Path(file), name


def _parse(file: Path) -> Any:
    # Fractions are allowed here and checked field by field: profits may have decimals.
    return strict_json.parse(strict_json.read_bytes(file), str(file))


def _instances(document: Any, file: Path) -> dict[str, dict[str, Any]]:
    """Every literature instance of a document by name."""
    if _has_fields(document, MMKP) or _has_fields(document, GAP):
        return {str(document.get("name", file.stem)): document}
    if isinstance(document, list) and document and all(_has_fields(d, MMKP) for d in document):
        return {str(item.get("name", i)): item for i, item in enumerate(document)}
    several = document.values() if isinstance(document, dict) else ()
    if several and all(_has_fields(d, GAP) for d in several):
        return dict(document)
    raise InstanceError(f"{file}: not a known kind of instance file; {_ALLOWED}")


def _has_fields(document: Any, fields: Sequence[str]) -> bool:
    """Whether a JSON object has the fields of a kind of instance."""
    return isinstance(document, dict) and all(field in document for field in fields)


def _gap_to_instance(document: dict[str, Any], what: str, name: str) -> Instance:
    """A GAP instance as an Instance: agents are ranks, items are tables with an option per agent.

    Costs with decimals are multiplied by a power of ten, and negated for ``sense`` ``max``;
    ``source`` says so.

    Raises
    ------
    InstanceError
        Naming the field, what was found and what is allowed.
    """
    sign = -1 if _one_of(document, "sense", ("min", "max"), what) == "max" else 1
    agents, items = (_positive(document, f, what) for f in GAP[:2])
    cost = _matrix(document["cost"], agents, items, f"{what}: cost")
    weight = _matrix(document["weight"], agents, items, f"{what}: weight")
    capacity = [int(c) for c in _numbers(document["capacity"], agents, f"{what}: capacity")]
    scale = sign * common_scale((c for row in cost for c in row), f"{what}: cost")
    times = "cost" if scale == 1 else f"{scale} × cost".replace("-", "−")
    builder = InstanceBuilder(
        [list(range(agents))], ["cost"], [("capacity", Scope.RANK, capacity)],
        Objective.TOTAL, name, f"GAP {name}: minimise {times}",
    )  # fmt: skip
    for item in range(items):
        builder.add_table(f"item{item}")
        for agent in range(agents):
            use = {"capacity": int(weight[agent][item])}
            shard = Shard(use, (scaled(cost[agent][item], scale),))
            builder.add_option(f"agent{agent}", [Block([agent], [shard])])
    return _built(builder, document, scale)


def _mmkp_to_instance(document: dict[str, Any], what: str) -> Instance:
    """An MMKP instance as an Instance that minimises −profit × scale.

    Groups become tables, items options with one ``CLUSTER`` block, knapsacks cluster resources;
    profits with decimals are multiplied by a power of ten, which ``source`` names.

    Raises
    ------
    InstanceError
        Naming the field, what was found and what is allowed.
    """
    _one_of(document, "sense", ("max",), what)
    groups, items, knapsacks = (_positive(document, f, what) for f in MMKP[:3])
    capacity = [int(c) for c in _numbers(document["capacity"], knapsacks, f"{what}: capacity")]
    profit = _matrix(document["profit"], groups, items, f"{what}: profit")
    scale = common_scale((p for row in profit for p in row), f"{what}: profit")
    name = str(document.get("name", what))
    times = f"−{scale} × profit" if scale > 1 else "−profit"
    builder = InstanceBuilder(
        [[0]], ["profit"], [(f"knapsack{k}", Scope.CLUSTER, c) for k, c in enumerate(capacity)],
        Objective.TOTAL, name, f"MMKP {name}: minimise {times}",
    )  # fmt: skip
    weights = document["weight"]
    if not isinstance(weights, list) or len(weights) != groups:
        raise InstanceError(f"{what}: weight must list {groups} groups")
    for group in range(groups):
        builder.add_table(f"group{group}")
        uses = _matrix(weights[group], items, knapsacks, f"{what}: weight[{group}]")
        for item, use in enumerate(uses):
            amounts = {f"knapsack{k}": int(amount) for k, amount in enumerate(use)}
            shard = Shard(amounts, (scaled(profit[group][item], -scale),))
            builder.add_option(f"item{item}", [Block(Where.CLUSTER, [shard])])
    return _built(builder, document, -scale)


def _built(builder: InstanceBuilder, document: dict[str, Any], scale: int) -> Instance:
    """The Instance, with the published values in its units for people and comparisons."""
    found: list[dict[str, object]] = []
    for field in ("optimum", "best_known"):
        value = document.get(field)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            objective = round(value * scale)
            found.append({"planner": f"published {field}", "value": value, "objective": objective})
    return replace(builder.build(reference=found), time_unit="cost")


def _positive(document: dict[str, Any], field: str, what: str) -> int:
    """A field that must be a whole number of 1 or more."""
    value = document[field]
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InstanceError(f"{what}: {field} must be a whole number, 1 or more, found {value!r}")
    return value


def _one_of(document: dict[str, Any], field: str, allowed: Sequence[str], what: str) -> str:
    """A text field with few values; the first is the default."""
    value = document.get(field, allowed[0])
    if value not in allowed:
        raise InstanceError(f"{what}: {field} is {value!r}, allowed: {' or '.join(allowed)}")
    return str(value)


def _numbers(values: Any, count: int, what: str, whole: bool = True) -> list[int | float]:
    """A list of ``count`` numbers; whole ones must be 0 or more."""
    if not isinstance(values, list) or len(values) != count:
        size = f"{len(values)} numbers" if isinstance(values, list) else repr(values)[:40]
        raise InstanceError(f"{what} must list {count} numbers, found {size}")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InstanceError(f"{what}: a number is needed, found {value!r}")
        if abs(value) >= MAX_VALUE or value != value:
            raise InstanceError(f"{what}: {value!r} is out of range")
        if whole and (value != int(value) or value < 0):
            raise InstanceError(f"{what}: whole numbers of 0 or more are needed, found {value!r}")
    return values


def _matrix(values: Any, rows: int, columns: int, what: str) -> list[list[int | float]]:
    """A list of ``rows`` lists of ``columns`` numbers: whole for weights, any for values."""
    if not isinstance(values, list) or len(values) != rows:
        size = f"{len(values)} rows" if isinstance(values, list) else repr(values)[:40]
        raise InstanceError(f"{what} must have {rows} rows, found {size}")
    whole = "weight" in what.rsplit(": ", 1)[-1]
    return [_numbers(row, columns, f"{what}[{i}]", whole) for i, row in enumerate(values)]


def common_scale(values: Iterable[int | float], what: str) -> int:
    """The smallest power of ten that makes every value, all finite, an integer.

    Raises
    ------
    InstanceError
        For more than :data:`MAX_DECIMALS` decimals.
    """
    decimals = 0
    for value in values:
        # repr gives the shortest decimal that reads back: what the file said.
        exponent = Decimal(repr(value)).normalize().as_tuple().exponent
        assert isinstance(exponent, int)
        decimals = max(decimals, -exponent)
    if decimals > MAX_DECIMALS:
        raise InstanceError(f"{what}: more than {MAX_DECIMALS} decimals")
    return int(10**decimals)


def scaled(value: int | float, scale: int) -> int:
    """A value times a scale that :func:`common_scale` found, or its negative."""
    return int(Decimal(repr(value)) * scale)
