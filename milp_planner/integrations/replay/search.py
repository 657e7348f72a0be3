"""The best of what a trainer can be made to run: a local search over settings, each replayed."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from formulations import Instance, Placement, check
from formulations import Settings as Limits
from formulations.instance.facts import option_facts
from milp_planner.errors import FallsShort
from milp_planner.inputs import Model
from milp_planner.inputs.constraints import PinSpec
from milp_planner.integrations.replay import Ran, Trainer
from milp_planner.pricing.options import TIERED, WHOLE_ROWS, Choice, Options

Settings = tuple[int, ...]
"""One option a table, whose type, mode and ratio the trainer is asked for."""
PAIRS = 200
"""Most options in all for which changes of two tables at once are tried."""


@dataclass(frozen=True, eq=False)
class Found:
    """What runs with some settings."""

    settings: Settings
    placement: Placement
    cost: int
    """The objective."""


_Score = tuple[int, float]
"""Less is better: 0 and its cost for what fits, 1 and by how much for what overflows; what stops
is :data:`_STOPS`."""
_STOPS: _Score = (2, 0.0)


class Search:
    """Settings of a trainer on an Instance, with what runs of each.

    Parameters
    ----------
    trainer : Trainer
    options : Options
        Of the Instance, in its order.
    instance : Instance
    enough : int or None
        An objective at which to stop: no plan costs less.
    settings : Settings
        Time limit of the search, seed of the changes drawn, and stop flag.

    Raises
    ------
    FallsShort
        If a table has no option that the trainer can run.
    """

    def __init__(
        self,
        trainer: Trainer,
        options: Options,
        instance: Instance,
        settings: Limits,
        enough: int | None = None,
    ) -> None:
        self.trainer, self.options, self.instance = trainer, options, instance
        self.choices = [self._runnable(t) for t in range(instance.num_tables)]
        self.best: Found | None = None
        self.tried: dict[Settings, _Score] = {}
        self._asked: dict[int, PinSpec] = {
            o: _pin(options.choices[o]) for found in self.choices for o in found
        }
        costs = option_facts(instance).cost
        self._dearest = sorted(
            range(len(self.choices)), key=lambda t: -min(int(costs[o]) for o in self.choices[t])
        )
        self._draw = random.Random(settings.seed)
        self._end = time.monotonic() + (settings.time_limit or math.inf)
        self._stop, self._enough = settings.stop, enough

    def _runnable(self, index: int) -> list[int]:
        table = self.options.model.tables[index]
        found = [
            o
            for o in self.options.of(index)
            if self.options.choices[o].nodes == 1
            and self.trainer.can_run(table, self.options.choices[o])
        ]
        if not found:
            names = ", ".join(self.options.names[o] for o in list(self.options.of(index))[:4])
            raise FallsShort(f"table {table.name!r} has no option that runs there (it has {names})")
        return found

    def nearest(self, settings: Sequence[int]) -> Settings:
        """The options that can be run and are most like others, table by table."""
        return tuple(
            min(found, key=lambda o: self._unlike(o, wanted))
            for found, wanted in zip(self.choices, settings, strict=True)
        )

    def _unlike(self, option: int, wanted: int) -> tuple[bool, ...]:
        this, that = self.options.choices[option], self.options.choices[wanted]
        return (
            option != wanted, this.mode != that.mode, this.ratio != that.ratio,
            _family(this) != _family(that), this.sharding != that.sharding,
        )  # fmt: skip

    def uniform(self) -> Iterator[Settings]:
        """One sharding type for all tables that have it; other tables by their first option."""
        for kind in dict.fromkeys(
            self.options.choices[o].sharding for found in self.choices for o in found
        ):
            yield tuple(
                next((o for o in found if self.options.choices[o].sharding == kind), found[0])
                for found in self.choices
            )

    def run(self, start: Settings) -> Found | None:
        """The best found by local changes of ``start`` and of uniform settings, the better first.

        Others start with one type for the dearest tables and another for the rest.
        """
        self.score(start)  # in any case, so that nothing dearer is handed out
        uniform = [*dict.fromkeys(self.uniform())]
        starts = dict.fromkeys([start, *uniform, *self._mixed(uniform)])
        late = (3, 0.0)
        for first in sorted(starts, key=lambda each: late if self._over() else self.score(each)):
            self.descend(first)
            if self._over():
                break
        self._pairs()
        count = math.prod(map(len, self.choices))
        while self.best is not None and not self._over() and count > len(self.tried):
            self.descend(self._shaken(self.best.settings))
        return self.best

    def _mixed(self, uniform: Sequence[Settings]) -> Iterator[Settings]:
        """The dearest 1, 2, 4, … tables as in one uniform setting, the rest as in another."""
        for dear, rest in permutations(uniform, 2):
            for power in range(len(self._dearest).bit_length()):
                mixed = list(rest)
                for table in self._dearest[: 2**power]:
                    mixed[table] = dear[table]
                yield tuple(mixed)

    def _over(self) -> bool:
        stopped = self._stop is not None and self._stop.is_set()
        done = self.best is not None and self.best.cost <= (self._enough or 0)
        return stopped or done or time.monotonic() >= self._end

    def _shaken(self, settings: Settings) -> Settings:
        changed = list(settings)
        for table in self._draw.sample(range(len(changed)), min(3, len(changed))):
            changed[table] = self._draw.choice(self.choices[table])
        return tuple(changed)

    def neighbours(self, settings: Settings) -> Iterator[Settings]:
        """Settings with one table changed, while there is time."""
        for table in self._dearest:
            for option in self.choices[table]:
                if self._over():
                    return
                yield (*settings[:table], option, *settings[table + 1 :])

    def descend(self, settings: Settings) -> None:
        """Change one table at a time for the better, until no change is; ``best`` is kept."""
        score, improved = self.score(settings), True
        while improved and not self._over():
            improved = False
            for table in self._dearest:
                for option in self.choices[table]:
                    other = (*settings[:table], option, *settings[table + 1 :])
                    if not self._over() and self.score(other) < score:
                        settings, score, improved = other, self.tried[other], True

    def _pairs(self) -> None:
        """Change two tables of the best settings at once, and start again from what is better."""
        changes = [(t, o) for t, found in enumerate(self.choices) for o in found]
        if self.best is None or len(changes) > PAIRS:
            return
        start = self.best.settings
        for i, (table, option) in enumerate(changes):
            for other, second in changes[i + 1 :]:
                if other == table or self._over():
                    continue
                changed = list(start)
                changed[table], changed[other] = option, second
                self.score(tuple(changed))
        if self.best.settings != start:
            self.descend(self.best.settings)
            self._pairs()

    def score(self, settings: Settings) -> _Score:
        """How good what runs is; the best is kept."""
        if settings not in self.tried:
            self.tried[settings] = self._score(settings)
        return self.tried[settings]

    def _score(self, settings: Settings) -> _Score:
        pairs = zip(self.instance.table_names, settings, strict=True)
        asked = {name: self._asked[option] for name, option in pairs}
        found = _STOPS
        with suppress(FallsShort):  # the trainer would stop
            for ran in self.trainer.runs(asked, asked, self.options.model, self.options.cluster):
                found = min(found, self._judged(settings, ran))
        return found

    def _judged(self, settings: Settings, ran: Ran) -> _Score:
        placement = _placement(self.instance, settings, ran)
        verdict = check(self.instance, placement)
        if verdict.loads is None:
            return _STOPS
        if not verdict.feasible:
            over = sum(
                float(np.maximum(use / np.maximum(resource.capacity, 1) - 1.0, 0.0).sum())
                for use, resource in zip(verdict.loads.use, self.instance.resources, strict=True)
            )
            return 1, over
        cost = verdict.objectives[self.instance.objective.value]
        if self.best is None or cost < self.best.cost:
            self.best = Found(settings, placement, cost)
        return 0, float(cost)


def widened(model: Model, trainer: Trainer) -> Model:
    """The model with the widths and ratios that the trainer uses on its tables' grids."""
    changed = []
    for table in model.tables:
        limits, own = table.constraints, trainer.grid(table)
        more = {
            name: (*grid, value)
            for name, value in own.items()
            if (grid := getattr(limits, name)) is not None and value not in grid
        }
        changed.append(table.model_copy(update={"constraints": limits.model_copy(update=more)}))
    return model.model_copy(update={"tables": tuple(changed)})


def held(model: Model, trainer: Trainer) -> Model:
    """The model with no other widths and ratios than the trainer uses; pins are as they were."""
    changed = []
    for table in model.tables:
        own = {} if table.constraints.pin else trainer.grid(table)
        limits = table.constraints.model_copy(update={k: (value,) for k, value in own.items()})
        changed.append(table.model_copy(update={"constraints": limits}))
    return model.model_copy(update={"tables": tuple(changed)})


def _family(choice: Choice) -> str:
    """What a type keeps whole: a trainer that cannot cut a table as asked holds it whole."""
    if choice.sharding in WHOLE_ROWS:
        return "rows"
    return "table" if choice.sharding == "data_parallel" else "columns"


def _pin(choice: Choice) -> PinSpec:
    return PinSpec(
        mode=choice.mode,
        sharding_type=choice.sharding,
        cache_ratio=choice.ratio if choice.mode in TIERED else None,
        dist_type=choice.dist_type,
    )


def _placement(instance: Instance, settings: Settings, ran: Ran) -> Placement:
    """The options on the ranks that run them; shards of a pinned option are where it pins them."""
    ranks = []
    for name, option in zip(instance.table_names, settings, strict=True):
        blocks = [instance.settled_ranks(block) for block in instance.blocks_of(option)]
        found = np.asarray(ran.pins[name].ranks or (), dtype=np.int64)
        ranks.append([found if fixed is None else fixed for fixed in blocks])
    return Placement(np.asarray(settings, dtype=np.int64), ranks)
