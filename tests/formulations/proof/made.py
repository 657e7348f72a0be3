"""Certificates that the product makes with rows of patterns and of peaks, of random instances."""

from collections.abc import Iterator
from random import Random

from formulations.instance import Instance, Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.result.certificate import Certificate
from tests.formulations.brute_force import brute_force
from tests.formulations.patterns.test_boxes import boxed, columns
from tests.formulations.patterns.test_patterns import decided


def made(numbers: range) -> Iterator[tuple[Instance, int, Certificate]]:
    """Instances, their optimum, and certificates: of boxes of peaks for even numbers, of patterns
    that the optimum has no plan below for odd ones."""
    for number in numbers:
        rng = Random(number)
        instance = large(rng) if number % 2 else columns(rng)
        truth = brute_force(instance).objective
        if not truth:
            continue
        if number % 2:
            decision = decided(instance, truth - 1)
            proof = decision.certificate if decision else None
        else:
            found = boxed(instance, truth + rng.randint(0, 3))
            proof = found[1] if found else None
        if proof is not None and kinds(proof) & {"pattern", "peaks"}:
            yield instance, truth, proof


def large(rng: Random) -> Instance:
    """Tables with shards of which one or two fill one of three ranks, whole or as two halves."""
    builder = InstanceBuilder([[0, 1, 2]], ["step"], [("hbm", "rank", 9)], "busiest_rank")
    for table in range(rng.randint(4, 6)):
        builder.add_table(f"t{table}")
        for option in range(rng.randint(1, 2)):
            count, cost = option + 1, rng.randint(10, 30)
            shard = Shard({"hbm": rng.randint(0, 3)}, [cost // count + option])
            builder.add_option(f"o{option}", [Block(Where.ANY_RANK, [shard], count=count,
                                                    distinct=rng.random() < 0.5)])  # fmt: skip
    return builder.build()


def kinds(certificate: Certificate) -> set[str]:
    """The kinds of rows in a certificate."""
    return {row["row"] for vector in certificate.vectors for row in vector}
