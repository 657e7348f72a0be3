"""The stand-alone checker and ``verify`` on changed files: ``python benchmarks/proofs/agree.py``.

Outcomes of random small instances (those of benchmarks/fuzz, by number) with certificates of the
prover, and of as many instances with certificates of peaks, changed at random in
one to three places: keys removed, added, renamed, values replaced by others of the file, by numbers
nearby or at the edge of what is allowed, and by other types. Where the changed instance is still
valid, half of the outcomes name its fingerprint. The script counts how often the two end with which
exit codes, which must be equal.
"""

import argparse
import copy
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from formulations import Settings, checker, solve  # noqa: E402
from formulations.errors import InstanceError  # noqa: E402
from formulations.instance.file import instance_from_dict, instance_to_dict  # noqa: E402
from formulations.result.outcome_file import outcome_to_dict  # noqa: E402
from milp_planner import verify  # noqa: E402
from milp_planner.errors import PlannerError  # noqa: E402
from milp_planner.plans.plan_file import unpacked  # noqa: E402
from tests.formulations.fuzz.generate import generate  # noqa: E402
from tests.formulations.proof.made import made  # noqa: E402

EDGES: list[Any] = [
    None, True, False, 0, -1, 1, 1.0, 3.0, 0.5, 2**53, 2**63, -(2**63), 10**4299, "", "x", [], {},
    [[]], [{}], "\x1b", "optimal", "feasible", "infeasible", "unknown", "proof", "time_limit",
]  # fmt: skip


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000, help="changed files")
    parser.add_argument("--instances", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shown", type=int, default=10, help="disagreements that are printed")
    parser.add_argument("-o", "--output", type=Path)
    args = parser.parse_args()
    found, differ = tried(args.count, args.instances, args.seed)
    for text in differ[: args.shown]:
        print(text)
    result = {"changed files": args.count, "exit codes": dict(sorted(found.items())),
              "disagreements": len(differ)}  # fmt: skip
    print(json.dumps(result))
    if args.output:
        args.output.write_text(json.dumps(result, indent=1) + "\n")
    sys.exit(bool(differ))


def tried(count: int, instances: int, seed: int) -> tuple[Counter[str], list[str]]:
    """How often which exit codes occur for so many changed files, and disagreements in words."""
    found, differ, rng = Counter[str](), list[str](), Random(seed)
    pairs = list(originals(instances))
    with tempfile.TemporaryDirectory() as folder:
        one, other = Path(folder) / "outcome.json", Path(folder) / "instance.json"
        for number in range(count):
            documents = copy.deepcopy(pairs[number % len(pairs)])
            told = [change(rng, documents) for _ in range(rng.choice([1, 1, 2, 3]))]
            if rng.random() < 0.5:
                name_instance(*documents)
            for path, document in zip((one, other), documents, strict=True):
                path.write_text(json.dumps(document))
            alone, ours, said = both(one, other)
            found[f"{alone}" if alone == ours else f"{alone}, verify {ours}"] += 1
            if alone != ours:
                differ.append(f"checker {alone}, verify {ours}: {said} {told}")
    return found, differ


def name_instance(outcome: Any, instance: Any) -> None:
    """Give an outcome the fingerprint of its changed instance, if that still is one."""
    with suppress(InstanceError):
        fingerprint = instance_from_dict(instance).fingerprint
        if isinstance(outcome, dict) and "instance" in outcome:
            outcome["instance"] = fingerprint


def named_anew(document: Any, instance: Path | None) -> Any:
    """A plan or outcome with its instance's fingerprint, and a plan with its other parts' too."""
    with suppress(KeyError, checker.Unreadable, PlannerError, InstanceError):
        if instance is not None:
            name_instance(document, checker.parse(instance, "instance"))
            return document
        part = {key: unpacked(document[key], key) for key in checker.PARTS}
        name_instance(part["outcome"], part["instance"])
        prints = {key: checker.digest([part[key]]) for key in checker.PARTS[:3]}
        return (
            document | part | {"fingerprints": prints | {"instance": part["outcome"]["instance"]}}
        )
    return document


def both(outcome: Path, instance: Path | None) -> tuple[int, int, str]:
    """Exit codes of checker and ``verify``, and what they say."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()) as said:
        alone = checker.main([str(path) for path in (outcome, instance) if path])
    try:
        result = verify(outcome, instance=instance)
    except (PlannerError, InstanceError) as error:
        return alone, 2, f"{said.getvalue()} | {error}"
    text = "; ".join(f"{c.name}: {c.text}" for c in result.claims if c.ok is False)
    return alone, result.exit_code, f"{said.getvalue()} | {text}"


def originals(many: int) -> Iterator[list[Any]]:
    """Outcomes and instances, as documents; every other one with a row of peaks."""
    settings, proofs = Settings(time_limit=5, workers=1), made(range(2 * many))
    for number in range(1, many + 1):
        instance, proof = generate(number), None
        if number % 2:
            instance, _, proof = next(proofs)
        outcome = solve(instance, "cpsat", settings)
        # the checker does not read what must move
        outcome = outcome.with_(detail={})
        if proof is not None:
            outcome = outcome.with_(certificate=proof, certified_bound=proof.target)
        yield [outcome_to_dict(instance, outcome), instance_to_dict(instance)]


def change(rng: Random, documents: list[Any]) -> str:
    """Change one place of the documents, mostly of the outcome; return what was done."""
    places = [(holder, key, path) for holder, key, path in walk(documents[rng.random() < 0.3], "")]
    if not places:
        return "nothing left"
    holder, key, path = rng.choice(places)
    kind = rng.choice([0, 1, 2, 2, 2, 2, 2, 2, 3, 3, 4, 5])
    whole = [place for place in places if type(place[0][place[1]]) is int]
    holder, key, path = rng.choice(whole) if kind == 2 and whole else (holder, key, path)
    if kind == 0:
        del holder[key]
        return f"{path} removed"
    if kind == 1 and isinstance(holder, dict):
        holder[rng.choice(["more", "encoding", "version", key + " "])] = holder[key]
        return f"{path} again under another key"
    if kind == 1:
        holder.insert(key, copy.deepcopy(holder[key]))
        return f"{path} twice"
    if kind == 2 and type(holder[key]) is int:
        holder[key] += rng.choice([-1, 1, 1, 10])
    elif kind == 3:
        alike = [p for p in places if type(p[0][p[1]]) is type(holder[key])]
        source, name, _ = rng.choice(alike)
        holder[key] = copy.deepcopy(source[name])
    elif kind == 4 and type(holder[key]) is int:
        holder[key] = float(min(holder[key], 2**60))
    else:
        holder[key] = copy.deepcopy(rng.choice(EDGES))
    return f"{path} = {str(holder[key])[:60]}"


def walk(value: Any, path: str) -> Iterator[tuple[Any, Any, str]]:
    """Every place in a document: what holds it, its key, and how to find it."""
    items: Any = value.items() if isinstance(value, dict) else []
    for key, item in list(enumerate(value)) if isinstance(value, list) else list(items):
        yield value, key, f"{path}/{key}"
        yield from walk(item, f"{path}/{key}")


if __name__ == "__main__":
    main()
