"""Certificates changed at random, and whether the checker accepts them."""

import random
from collections.abc import Iterator
from typing import Any

from formulations.errors import InstanceError
from formulations.evidence.verify import certifies
from formulations.instance import Instance
from formulations.result.certificate import certificate_from_dict


def mutate(forged: dict[str, Any], draw: random.Random, raised: float = 0.5) -> None:
    """Change up to four numbers of a certificate's document in place, and in so many of the cases
    (a share) raise its target."""
    if draw.random() < raised:
        forged["target"] += draw.choice([1, 2, 5])
    places = [*_numbers(forged["vectors"]), *_numbers(forged["nodes"])]
    for holder, key in draw.sample(places, min(len(places), draw.randint(1, 4))):
        holder[key] = draw.choice([0, 1, holder[key] + 1, holder[key] * 2, 2**210, -1])


def _numbers(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, int):
            yield value, key
        elif isinstance(item, (dict, list)):
            yield from _numbers(item)


def accepted(instance: Instance, document: dict[str, Any]) -> bool:
    """Whether the checker accepts the document; False also where it is malformed."""
    try:
        return certifies(instance, certificate_from_dict(document))
    except (InstanceError, IndexError, ValueError, RecursionError):
        return False
