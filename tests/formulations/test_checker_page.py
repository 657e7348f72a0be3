"""Where docs/proof.md was once ambiguous: the checker does what the page says now."""

from __future__ import annotations

import pytest

from formulations import checker
from tests.formulations.by_hand import (
    TWO,
    Document,
    block,
    bound,
    exactly,
    instance,
    option,
    proves,
    shard,
    worked_example,
)


def on_every(*costs: list[int]) -> list[Document]:
    """Options on every rank with these costs in two phases."""
    return [
        option(f"o{i}", block("every_rank", shard(cost)), **({"g": 1} if i else {}))
        for i, cost in enumerate(costs)
    ]


def test_least_sum_of_floors() -> None:
    """Under step_time the least floor of a table is that of one option, over both phases."""
    tables = [on_every([9, 1], [1, 9]), on_every([5, 5])]
    document = instance(tables, "step_time", phases=["p", "q"], **TWO)
    exactly(document, bound(20, nodes=[{}]))  # the sums of least floors: 1 + 1 + 10 = 12


def test_numbers() -> None:
    """Multipliers and targets may be large; numbers that count or name something may not."""
    document = instance([on_every([1], [2])], **TWO)
    cost = {"row": "cost", "of": "busiest_rank", "times": 10**4299}
    fusion = {"row": "fusion", "of": "g", "table": 0, "times": 1}
    for row in (cost, cost | {"at": 1}, fusion | {"level": 7}, fusion | {"level": 1 - 2**53}):
        assert proves(document, bound(1) | {"vectors": [[row]], "nodes": [{"use": [0]}]})
    for row in (cost | {"at": 2**53}, fusion | {"level": 2**53}, fusion | {"level": 1, "of": "h"}):
        with pytest.raises(checker.Unreadable):
            proves(document, bound(1) | {"vectors": [[row]]})


def test_at_of_the_only_one() -> None:
    """Under total, and for a resource of the cluster, the only place may be named: 0."""
    net = {"name": "net", "scope": "cluster", "capacity": 9}
    document = instance([on_every([3])], "total", resources=[net], **TWO)
    row = {"row": "cost", "of": "total", "times": 1}
    for at in ({}, {"at": 0}):
        exactly(document, bound(6, nodes=[{"use": [0]}]) | {"vectors": [[row | at]]})
    for kind in (row, {"row": "capacity", "of": "net", "times": 1}):
        proves(document, bound(1) | {"vectors": [[kind | {"at": 0}]]})
        with pytest.raises(checker.Unreadable):
            proves(document, bound(1) | {"vectors": [[kind | {"at": 1}]]})


def test_nodes_breadth_first() -> None:
    """Children follow in the order of the nodes that split, not directly after each of them."""
    document, certificate = worked_example()
    first, second, third = [
        {"table": t, "options": [[0], [1]] if t == 0 else [[1], [0]]} for t in range(3)
    ]
    both, one = {"use": [0, 1]}, {"use": [1]}
    broad = [first, second, both, both, third, both, one]
    deep = [first, second, both, third, both, one, both]
    assert proves(document, certificate | {"nodes": broad})
    assert not proves(document, certificate | {"nodes": deep})


@pytest.mark.parametrize(
    ("change", "good"),
    [
        ({"forbidden": [{"table": "t0", "option": "o1"}] * 2}, True),
        ({"resources": [{"name": "hbm", "scope": "rank", "capacity": -1}]}, False),
        ({"resources": [{"name": "hbm", "scope": "rank", "capacity": 0}]}, True),
        ({"machines": [[0, 0]]}, False),
    ],
)
def test_instances(change: Document, good: bool) -> None:
    """Checker and product agree on what may repeat in an instance, and on what may be below 0."""
    from formulations.errors import InstanceError
    from formulations.instance.file import instance_from_dict

    document = instance([on_every([1], [2])], **TWO) | {"name": "n"} | change
    if good:
        checker.Instance(document)
        instance_from_dict(document)
        return
    with pytest.raises(checker.Unreadable):
        checker.Instance(document)
    with pytest.raises(InstanceError):
        instance_from_dict(document)


def test_sums_below_62_bits() -> None:
    """Costs or uses that add up to 2^62 or more are refused, as the product refuses them."""
    for count, good in ((2**11 - 1, True), (2**11, False)):
        dear = option("o", block("any_rank", shard(2**51), count=count))
        document = instance([[dear]], **TWO)
        if good:
            checker.Instance(document)
            continue
        with pytest.raises(checker.Unreadable, match="add up"):
            checker.Instance(document)
