"""Certificates that the product makes with rows of peaks, of random instances."""

from collections.abc import Iterator
from random import Random

from formulations.instance import Instance
from formulations.result.certificate import Certificate
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import ANY, at, built
from tests.formulations.patterns.test_boxes import boxed, columns


def made(numbers: range) -> Iterator[tuple[Instance, int, Certificate]]:
    """Instances, their optimum, and certificates: of two peaks for even numbers, of the busiest
    rank's for odd ones."""
    for number in numbers:
        rng = Random(number)
        instance = large(rng) if number % 2 else columns(rng)
        truth = brute_force(instance).objective
        if not truth:
            continue
        found = boxed(instance, truth + rng.randint(0, 3))
        if found is not None and "peaks" in kinds(found[1]):
            yield instance, truth, found[1]


def large(rng: Random) -> Instance:
    """Tables with shards of which one or two fill one of three ranks, whole or as two halves."""
    tables = []
    for _ in range(rng.randint(4, 6)):
        table = {}
        for count in range(1, 1 + rng.randint(1, 2)):
            cost = rng.randint(10, 30) // count + count - 1
            table[f"o{count}"] = at(ANY, cost, count=count, hbm=rng.randint(0, 3),
                                    distinct=rng.random() < 0.5)  # fmt: skip
        tables.append(table)
    return built(tables, machines=[range(3)], phases=["step"], hbm=9)


def kinds(certificate: Certificate) -> set[str]:
    """The kinds of rows in a certificate."""
    return {row["row"] for vector in certificate.vectors for row in vector}
