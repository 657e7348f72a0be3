"""Change a model and a cluster by path: ``cluster.hbm=96GB``, ``tables.user_*.rows=×1.2``.

A path names a field of the model (``workload.dedup``, ``tables.NAME.rows``) or of the cluster
(``reservations.hbm_percent``); ``model.`` and ``cluster.`` may stand before it. Tables go by name
or pattern; machines and ranks by number, or all of them where none is given. A value replaces the
field's; ``+10GB`` and ``-10GB`` add, ``×1.2`` (or ``*1.2``) multiplies, ``+50%`` and ``-50%`` grow
and shrink. The number of a list of machines or ranks repeats its first entry. What fractions of
whole numbers give is rounded up. Where two changes name one field, the first counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from fnmatch import fnmatchcase
from fractions import Fraction
from math import ceil
from typing import Annotated, Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from milp_planner.errors import BadInput
from milp_planner.inputs.cluster import Cluster, Reservations
from milp_planner.inputs.interconnect import Domains, Interconnect
from milp_planner.inputs.model import Model, Workload
from milp_planner.inputs.problems import choice, specs_in
from milp_planner.inputs.quantities import parse_bytes, parse_fraction
from milp_planner.inputs.spec import Count, Spec
from milp_planner.inputs.strict_yaml import plain_scalar
from milp_planner.inputs.two_d import TwoD

_HOMES: dict[str, type[Spec]] = {
    "cluster.interconnect": Interconnect,
    "cluster.two_d": TwoD,
    "cluster.reservations": Reservations,
    "model.workload": Workload,
}
SHORT = {name: f"{home}.{name}" for home, fields in _HOMES.items() for name in fields.model_fields}
SHORT |= {
    "hbm": "cluster.machines.ranks.hbm",
    "ddr": "cluster.machines.ddr",
    "ssd": "cluster.machines.ssd.size",
    "machines": "cluster.machines",
    "ranks_per_machine": "cluster.machines.ranks",
    "profile": "cluster.profile",
    "batch": "model.workload.batch_per_rank",
    "dim": "model.tables.*.dim",
}
"""Names that stand for a path, also after ``cluster.``: those of all fields of the workload and of
the cluster's reservations, division and links, and some more."""

Changes = Mapping[str, Any]
"""Values by path: plain values, or text as people write it."""
_Place = tuple[Any, Any]
"""A container and the key of a field in it."""
_SCALED = re.compile(r"(?:×|\*)\s*(?P<factor>[\d./]+)|(?P<sign>[+-])\s*(?P<size>.+)")


def changed(model: Model, cluster: Cluster, changes: Changes) -> tuple[Model, Cluster]:
    """Both inputs with some fields changed, and validated.

    Parameters
    ----------
    model, cluster
    changes : mapping of str to value
        As described above.

    Raises
    ------
    BadInput
        For a path that leads nowhere, a value that does not suit its field, or inputs that are not
        valid together with it, such as two machines without a link.
    """
    if not changes:
        return model, cluster
    data = {"model": model.to_dict(), "cluster": _stated(cluster)}
    roots = set(apply(data, changes))
    if "model" in roots:
        model = Model.from_dict(data["model"], model.name)
    if "cluster" in roots:
        cluster = _read(cluster, data["cluster"], cluster.name)
    return model, cluster


def changed_at_scale(model: Model, cluster: Cluster, changes: Changes) -> tuple[Model, Cluster]:
    """The same for questions of capacity: where the number of ranks changes and the batch of a rank
    does not, they share the global batch, each rounded up to whole samples."""
    more, larger = changed(model, cluster, changes)
    batch, ranks = more.workload.batch_per_rank, larger.num_ranks
    if ranks == cluster.num_ranks or batch != model.workload.batch_per_rank:
        return more, larger
    each = -(-batch * cluster.num_ranks // ranks)
    return changed_model(more, {"workload.batch_per_rank": each}), larger


def changed_model(model: Model, changes: Changes, where: str = "") -> Model:
    """The same for a model alone; ``where`` names it in errors."""
    data = {"model": model.to_dict()}
    return Model.from_dict(data["model"], where or model.name) if apply(data, changes) else model


def changed_cluster(cluster: Cluster, changes: Changes, where: str = "") -> Cluster:
    """The same for a cluster alone."""
    data = {"cluster": _stated(cluster)}
    if not apply(data, changes):
        return cluster
    return _read(cluster, data["cluster"], where or cluster.name)


def _read(before: Cluster, data: dict[str, Any], where: str) -> Cluster:
    if before.replicas > 1 and len(data["machines"]) != len(before.machines):
        raise BadInput(
            f"cluster {before.name} is one of {before.replicas} sharding groups; allowed, where "
            "machines are counted: a cluster without two_d"
        )
    if isinstance(data["profile"], _Unstated):
        del data["profile"]
    return Cluster.from_dict(data, where)


def apply(data: dict[str, Any], changes: Changes) -> list[str]:
    """Change plain values in place; returns the first part of every path."""
    paths = {_whole(path, data): value for path, value in changes.items()}
    done: set[tuple[int, Any]] = set()
    for counts in (True, False):  # a list has its length before its entries change
        for path, value in paths.items():
            if counts == _repeats(path, value):
                _change(data, path, value, done)
    return [path.partition(".")[0] for path in paths]


def whole_path(path: str) -> str:
    """A path from its input on, such as ``cluster.machines.ranks.hbm`` for ``hbm``; BadInput for
    one of neither input."""
    return _whole(path, {"model": dict(Model.model_fields), "cluster": dict(Cluster.model_fields)})


def root_of(path: str) -> str:
    """Which input a path is about: ``model`` or ``cluster``; BadInput for neither."""
    return whole_path(path).partition(".")[0]


def type_of(path: str) -> Any:
    """The annotated type of the field that a path names; of a list of machines or ranks, a number.

    BadInput for a path without such a field.
    """
    whole = whole_path(path)
    root, *parts = whole.split(".")
    found: FieldInfo | None = None
    within: list[type[BaseModel]] = [Model if root == "model" else Cluster]
    known: dict[str, FieldInfo] = {}
    for part in parts:  # names and numbers of entries are no fields
        known = {i.alias or name: i for each in within for name, i in each.model_fields.items()}
        if part in known:
            found, within = known[part], [*specs_in(known[part].annotation)]
    if found is None or parts[-1] not in known:
        raise BadInput(f"{path}: no such field; {choice(parts[-1], known)}")
    if whole in (SHORT["machines"], SHORT["ranks_per_machine"]):
        return Count
    return Annotated[(found.annotation, path, *found.metadata)]


def _change(data: dict[str, Any], path: str, value: Any, done: set[tuple[int, Any]]) -> None:
    places = list(_places(data, path.split("."), path))
    if not places:
        raise BadInput(f"{path}: the list is empty")
    for holder, key in places:
        if (id(holder), key) not in done:
            done.add((id(holder), key))
            old = holder.get(key) if isinstance(holder, dict) else holder[key]
            try:
                holder[key] = _new(old, value)
            except (ValueError, TypeError) as error:
                raise BadInput(f"{path}: {error}") from None
    if path == SHORT["machines"]:
        _refill_domains(data["cluster"])


def _whole(path: str, data: Mapping[str, Any]) -> str:
    """The full path that a short one stands for."""
    first, _, rest = path.partition(".")
    short = SHORT.get(rest if first in data else path, "")
    if short.partition(".")[0] == first or (short and first not in data):
        return short
    if first in data:
        return path
    for root, document in data.items():
        if first in document:
            return f"{root}.{path}"
    known = [*SHORT, "workload.FIELD", "tables.NAME.FIELD", "cluster.FIELD"]
    raise BadInput(f"change of {path!r}: {choice(path, known)}")


def _places(data: Any, parts: list[str], path: str) -> Iterator[_Place]:
    """The container and key of every field that a path names."""
    first, *rest = parts
    if isinstance(data, list):
        yield from _in_list(data, parts, path)
        return
    if isinstance(data, dict) and not rest:  # validation tells a field that does not exist
        yield data, first
        return
    if not isinstance(data, dict) or first not in data:
        known = data if isinstance(data, dict) else ()
        raise BadInput(f"{path}: no field {first!r}; {choice(first, [*known])}")
    if data[first] is None:
        data[first] = {}
    yield from _places(data[first], rest, path)


def _in_list(data: list[Any], parts: list[str], path: str) -> Iterator[_Place]:
    """Places in a list: by number, by name (which may contain dots), or in all of its entries."""
    first, *rest = parts
    if first.isdigit() and int(first) < len(data):
        yield from [(data, int(first))] if not rest else _places(data[int(first)], rest, path)
        return
    names = [str(each.get("name", "")) for each in data if isinstance(each, dict)]
    if not all(names):
        for each in data:
            yield from _places(each, rest if first == "*" else parts, path)
        return
    for count in range(len(rest), 0, -1):
        pattern = ".".join(parts[:count])
        found = [
            e
            for e, name in zip(data, names, strict=True)
            if name == pattern or fnmatchcase(name, pattern)
        ]
        for each in found:
            yield from _places(each, parts[count:], path)
        if found:
            return
    raise BadInput(f"{path}: no table is called {first!r}; {choice(first, names)}")


def _repeats(path: str, value: Any) -> bool:
    whole = str(value).strip().isdigit() and not isinstance(value, bool)
    return whole and path in (SHORT["machines"], SHORT["ranks_per_machine"])


def _new(old: Any, value: Any) -> Any:
    """The new value of a field."""
    text = value.strip() if isinstance(value, str) else ""
    match = _SCALED.fullmatch(text)
    if match is None or not _numeric(old):
        plain = plain_scalar(text, in_yaml=False) if text else value
        parts = isinstance(old, list) and bool(old) and isinstance(old[0], dict)
        return [deepcopy(old[0]) for _ in range(plain)] if parts and type(plain) is int else plain
    if match["factor"]:
        return scaled(old, parse_fraction(match["factor"], "a factor such as ×1.2"))
    sign = -1 if match["sign"] == "-" else 1
    if match["size"].endswith("%"):
        share = parse_fraction(match["size"], "a percentage such as +50%")
        return scaled(old, max(Fraction(0), 1 + sign * share))
    if not isinstance(old, int):
        raise ValueError(f"found {text!r}; allowed: a value, as amounts are added to whole numbers")
    return max(0, old + sign * parse_bytes(plain_scalar(match["size"], in_yaml=False)))


def _numeric(old: Any) -> bool:
    """Whether a field can be added to or multiplied: numbers, rates, and curves of a profile."""
    if isinstance(old, bool):
        return False
    return isinstance(old, int | float | dict) or (isinstance(old, str) and old[:1].isdigit())


def scaled(old: Any, factor: Fraction) -> Any:
    """A number times a factor, whole numbers rounded up, rates to the nearest; of a curve, the
    second number of every point, at most 1."""
    if isinstance(old, dict) and "points" in old:
        points = [[x, min(1.0, y * float(factor))] for x, y in old["points"]]
        return old | {"points": points}
    if isinstance(old, str):
        number, unit = re.fullmatch(r"([\d./]+)(.*)", old).groups()  # type: ignore[union-attr]
        exact = Fraction(number) * factor
        return f"{max(1, round(exact))}{unit}" if unit else str(exact)
    return ceil(old * factor) if isinstance(old, int) else old * float(factor)


class _Unstated(str):
    """A profile that nobody stated."""


def _stated(cluster: Cluster) -> dict[str, Any]:
    """A cluster as plain values; :func:`_read` drops a profile that is still unstated."""
    data = cluster.to_dict()
    if cluster.assumed_profile is not None:
        data["profile"] = _Unstated(cluster.profile)
    return data


def _refill_domains(data: dict[str, Any]) -> None:
    """Another number of machines lies in domains like the first."""
    links = data.get("interconnect")
    if links is not None and links.get("domains") is not None:
        domains = Domains.from_dict(links["domains"])
        links["domains"] = domains.refilled(len(data["machines"])).to_dict()
