"""Certificates changed at random, and whether checker and judge accept them."""

from collections.abc import Iterator
from random import Random
from typing import Any

from formulations.errors import InstanceError
from formulations.evidence.verify import certifies
from formulations.instance import Instance
from formulations.proof.judge import closes
from formulations.result.certificate import certificate_from_dict

Document = dict[str, Any]


def mutate(rng: Random, certificate: Document) -> None:
    """Change what a certificate means in one place: its claim, a number, a row, a node, a case."""
    kind = rng.randint(0, 4)
    if kind == 0 and rng.random() < 0.2:
        certificate["kind"] = "infeasible"
        certificate.pop("target", None)
        vectors = certificate["vectors"]
        certificate["vectors"] = [[row for row in v if "cost" not in row["row"]] for v in vectors]
    elif kind == 0 and "target" in certificate:
        certificate["target"] += rng.choice([1, 1, 2, 5])
    elif kind == 1:
        places = [*_numbers(certificate["vectors"]), *_numbers(certificate["nodes"])]
        for holder, key in places and [rng.choice(places)]:
            numbers = [0, 1, holder[key] + 1, holder[key] * 2, max(0, holder[key] - 1), 2**210, -1]
            holder[key] = rng.choice(numbers)
    elif kind == 2 and any(certificate["vectors"]):
        rows = rng.choice([rows for rows in certificate["vectors"] if rows])
        at = rng.randrange(len(rows))
        rows[at : at + 1] = rng.choice([[], [rows[at], dict(rows[at])]])
    elif kind == 3:
        node = rng.choice(certificate["nodes"])
        key = rng.choice(sorted(node) or ["use"])
        node[key] = _other(rng, node.get(key, []))
    else:
        splits = [n for n in certificate["nodes"] if n.get("options") or "machines" in n]
        for last in splits[-1:]:
            certificate["nodes"].pop()
            key = "options" if "options" in last else "machines"
            last[key] = last[key][:-1]


def _numbers(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, int):
            yield value, key
        elif isinstance(item, (dict, list)):
            yield from _numbers(item)


def _other(rng: Random, value: Any) -> Any:
    """A list with an entry changed, lost or doubled; a number changed by one."""
    if isinstance(value, int):
        return max(0, value + rng.choice([-1, 1]))
    if not isinstance(value, list) or not value:
        return [0]
    value = list(value)
    at = rng.randrange(len(value))
    if isinstance(value[at], list) and rng.random() < 0.7:
        value[at] = _other(rng, value[at])
    elif rng.random() < 0.5:
        del value[at]
    else:
        value.insert(rng.randrange(len(value)), value[at])
    return value


def checked(instance: Instance, document: Document) -> bool:
    """Whether the checker can read a certificate and accepts it."""
    try:
        return certifies(instance, certificate_from_dict(document))
    except InstanceError:
        return False


def judged(instance: Instance, document: Document) -> bool:
    """Whether the judge on arrays closes a certificate."""
    try:
        return closes(instance, certificate_from_dict(document)) is True
    except InstanceError:
        return False
