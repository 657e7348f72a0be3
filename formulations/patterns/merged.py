"""Tables and shards that are alike, as one: what a program over patterns distinguishes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from formulations.classes import classes_left
from formulations.instance import IntArray
from formulations.instance.facts import total_use
from formulations.patterns.found import Mask
from formulations.proof.peaks import Peaks


class Choice(NamedTuple):
    """An option of the tables of a class: its floor, its shards, and its use of each resource."""

    floor: int
    shards: tuple[tuple[int, int], ...]
    use: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Merged:
    """Classes of tables that have the same choices.

    Attributes
    ----------
    times : list of int
        Tables in each class.
    choices : list of (int, Choice)
        Class and choice; ``shards`` are pairs of a kind of shard and its number.
    options : list of int arrays
        The options that each choice stands for.
    kind : int64 array [entries]
        Kind of each shard entry; -1 where its option is not kept, or puts only a floor there.
    first : int64 array [kinds]
        An entry of each kind.
    tables : int64 array [tables]
        How many tables a table stands for: those of its class, or none.
    """

    times: list[int]
    choices: list[tuple[int, Choice]]
    options: list[IntArray]
    kind: IntArray
    first: IntArray
    tables: IntArray


def merged(peaks: Peaks, keep: Mask) -> Merged:
    """Put tables together whose options kept are alike, and their shards with the same loads."""
    instance = peaks.instance
    total, starts = total_use(instance), instance.block_shards[instance.option_blocks]
    values = np.stack([peaks.load, peaks.second_load, peaks.most, peaks.number], axis=1)
    classes: dict[object, int] = {}
    kinds: dict[object, int] = {}
    kind = np.full(len(values), -1, dtype=np.int64)
    times: list[int] = []
    tables = np.zeros(instance.num_tables, dtype=np.int64)
    leads: list[int] = []
    choices: dict[tuple[int, Choice], list[IntArray]] = {}
    for equal in classes_left(instance, keep).members:
        table = int(equal[0])
        own = [option for option in instance.options_of(table) if keep[option]]
        rows = {o: [tuple(v) for v in values[slice(*starts[[o, o + 1]])].tolist()] for o in own}
        use = {o: tuple(total[o].tolist()) for o in own}
        key = frozenset((int(peaks.floor[o]), tuple(rows[o]), use[o]) for o in own)
        group = classes.setdefault(key, len(classes))
        if group == len(times):
            times.append(0)
            leads.append(table)
        times[group] += len(equal)
        apart = instance.table_options[equal] - instance.table_options[table]
        for option in own:
            shards = []
            for entry, row in enumerate(rows[option], int(starts[option])):
                if not any(row[:2]):
                    continue  # only a floor
                kind[entry] = kinds.setdefault((group, row), len(kinds))
                shards.append((int(kind[entry]), row[3]))
            choice = Choice(int(peaks.floor[option]), tuple(shards), use[option])
            choices.setdefault((group, choice), []).append(option + apart)
        first, end = starts[instance.table_options[[table, table + 1]]]
        for other in starts[instance.table_options[equal]].tolist():
            kind[other : other + end - first] = kind[first:end]
    first = np.zeros(len(kinds), dtype=np.int64)
    first[kind[kind >= 0]] = np.flatnonzero(kind >= 0)
    tables[leads] = times
    return Merged(
        times, list(choices), [np.concatenate(o) for o in choices.values()], kind, first, tables,
    )  # fmt: skip
