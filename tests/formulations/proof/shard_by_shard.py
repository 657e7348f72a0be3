"""What options add to the rows of a proof, collected shard by shard: slow and plain, an oracle for
the arrays of :mod:`formulations.proof.build`."""

import numpy as np

from formulations.instance import BlockView, Objective, Scope
from formulations.proof.rows import FREE, HOME, Rows

#: Row -> amount.
Terms = dict[int, int]
#: An option, how often the slot counts, its role, and the group and terms of each choice.
Slot = tuple[int, int, int, list[tuple[int, Terms]]]


class ShardByShard:
    """Own terms and slots of every option.

    Attributes
    ----------
    possible : bool array [options]
    own : list of Terms
    slots : list of Slot
        Also of options that turn out to be impossible.
    """

    def __init__(self, rows: Rows) -> None:
        instance = self._instance = rows.instance
        self._apart, self._cells, self._measures = rows.apart, rows.cells, rows.measures
        self._layout = rows.layout
        self._fused = {triple: i for i, triple in enumerate(rows.fused)}
        self._pins = {p.option: p.ranks for p in instance.pins if p.ranks is not None}
        self._cost = self._measures.value[:, : len(self._measures.costs)].tolist()
        self._value = self._measures.value.tolist()
        self._use = instance.shard_use.tolist()
        self._total = instance.shard_cost.sum(axis=1).tolist()
        self._move = instance.shard_move.tolist()
        self._cell_of = self._cells.cell_of.tolist()
        self._sizes = self._cells.cell_size.tolist()
        self._groups = self._cells.cell_group.tolist()
        self._now = {c.table: c.option for c in instance.current}
        self._room = self._rooms()
        self.own: list[Terms] = []
        self.slots: list[Slot] = []
        self.possible = instance.allowed.copy()
        for option in range(instance.num_options):
            self.own.append({})
            if self.possible[option]:
                self.possible[option] = self._option(option)

    def _rooms(self) -> list[list[int]]:
        """Capacity of every resource at the largest rank of each cell (cluster: all of it)."""
        rooms = []
        for cell in range(self._cells.count):
            ranks = np.flatnonzero(self._cells.cell_of == cell)
            of = {Scope.RANK: ranks, Scope.MACHINE: self._instance.machine_of[ranks]}
            places = [of.get(r.scope, np.zeros(1, int)) for r in self._instance.resources]
            pairs = zip(self._instance.resources, places, strict=True)
            rooms.append([int(r.capacity[place].max()) for r, place in pairs])
        return rooms

    def _option(self, option: int) -> bool:
        """Fill in one option; False when one of its shards has no place."""
        instance = self._instance
        table = int(instance.table_of[option])
        own = self.own[option]
        self._table, self._moves = table, self._now.get(table, option) != option
        self._current = option
        if self._moves:
            own[self._layout.moved_tables] = 1
        group, level = int(instance.option_group[option]), int(instance.option_level[option])
        if group >= 0:
            own[self._layout.fusion + self._fused[table, group, level]] = 1
        width = self._measures.value.shape[1]
        for f in range(width):
            self._add(own, self._layout.cover + f, int(self._measures.floor[option, f]))
            self._add(own, self._chief_row(0, f), int(self._measures.excess[option, f]))
        blocks = [instance.block(b) for b in instance.blocks_of(option)]
        homes = [b.index for b in blocks if not instance.settled[b.index]]
        self._home = homes[0] if homes and self._apart else -1
        pins = self._pins.get(option)
        return all(self._block(b, None if pins is None else pins[i]) for i, b in enumerate(blocks))

    def _chief_row(self, index: int, f: int) -> int:
        width, tables = self._measures.value.shape[1], self._instance.num_tables
        return self._layout.chief + (index * width + f) * tables + self._table

    @staticmethod
    def _add(terms: Terms, row: int, amount: int) -> None:
        if amount:
            terms[row] = terms.get(row, 0) + amount

    def _shard(self, terms: Terms, entry: int, cell: int, times: int = 1) -> Terms:
        """Add ``times`` shards like ``entry`` in a cell."""
        layout, add = self._layout, self._add
        for f, cost in enumerate(self._cost[entry]):
            add(terms, layout.cost + f * self._cells.count + cell, cost * times)
        if self._instance.objective == Objective.TOTAL:
            add(terms, layout.cost, self._total[entry] * times)
        for i, resource in enumerate(self._instance.resources):
            part = {Scope.RANK: cell, Scope.MACHINE: self._groups[cell]}.get(resource.scope, 0)
            add(terms, layout.resource[i] + part, self._use[entry][i] * times)
        if self._moves:
            add(terms, layout.moved_bytes, self._move[entry] * times)
        return terms

    def _as_chief(self, terms: Terms, entry: int, cell: int) -> Terms:
        """Let the first shard of a home block count in the largest-shard rows of its machine."""
        for f, value in enumerate(self._value[entry]):
            self._add(terms, self._chief_row(1 + self._groups[cell], f), value)
        return terms

    def _open(self, entry: int, cell: int) -> bool:
        use = self._use[entry]
        scopes = (r.scope != Scope.CLUSTER for r in self._instance.resources)
        return all(
            u <= room
            for u, room, counts in zip(use, self._room[cell], scopes, strict=True)
            if counts
        )

    def _block(self, block: BlockView, pinned: tuple[int, ...] | None) -> bool:
        own = self.own[self._current]
        if block.unplaced:
            for position in range(block.count):
                self._shard(own, block.entry(position), 0)
            return True
        if block.settled:
            return self._fixed(block)
        if not block.by_machine:
            allowed = range(self._instance.num_ranks) if block.places is None else block.places
            ranks = set(allowed) if pinned is None else set(allowed) & set(pinned)
            if block.shared and block.distinct:
                room = sum(self._open(block.entry(0), self._cell_of[r]) for r in ranks)
                if room < block.count:
                    return False
            return self._anywhere(block, sorted({self._cell_of[r] for r in ranks}))
        machines = set(
            range(len(self._instance.machines)) if block.places is None else block.places
        )
        if pinned is not None:
            machines &= {int(self._instance.machine_of[r]) for r in pinned}
        if block.whole:
            return self._whole_machines(block, sorted(machines))
        return self._on_one_machine(block, sorted(machines), pinned)

    def _fixed(self, block: BlockView) -> bool:
        own = self.own[self._current]
        everywhere = block.everywhere
        ranks = range(self._instance.num_ranks) if everywhere else block.places or ()
        counts: dict[tuple[int, int], int] = {}
        if everywhere and block.shared:
            entry = block.entry(0)
            counts = {(entry, cell): size for cell, size in enumerate(self._sizes)}
        else:
            for position, rank in enumerate(ranks):
                key = (block.entry(position), self._cell_of[rank])
                counts[key] = counts.get(key, 0) + 1
        for (entry, cell), times in counts.items():
            if not self._open(entry, cell):
                return False
            self._shard(own, entry, cell, times)
        if self._apart and everywhere:
            self._cover_machines(block)
        return True

    def _cover_machines(self, block: BlockView) -> None:
        own = self.own[self._current]
        for machine, ranks in enumerate(self._instance.machines):
            self._cover(own, machine, {block.entry(r) for r in ranks})

    def _cover(self, terms: Terms, machine: int, entries: set[int]) -> None:
        """Add the smallest of the shards that cover all ranks of a machine."""
        width = self._measures.value.shape[1]
        for f in range(width):
            least = min(self._value[e][f] for e in entries)
            self._add(terms, self._layout.cover + (1 + machine) * width + f, least)

    def _slot(self, times: int, role: int, choices: list[tuple[int, Terms]]) -> bool:
        """Add a slot for shards with several possible places; a single place needs no slot."""
        if times == 0:
            return True
        if not choices:
            return False
        if len(choices) == 1 and role == FREE:
            for row, amount in choices[0][1].items():
                self._add(self.own[self._current], row, amount * times)
        else:
            self.slots.append((self._current, times, role, choices))
        return True

    def _anywhere(self, block: BlockView, cells: list[int]) -> bool:
        """Add shards that each take a rank in one of the cells."""
        home, first, times = block.index == self._home, block.entry(0), dict[int, int]()
        for position in range(home, block.count):
            times[block.entry(position)] = times.get(block.entry(position), 0) + 1
        if home:
            choices = [(self._groups[c], self._as_chief(self._shard({}, first, c), first, c))
                       for c in cells if self._open(first, c)]  # fmt: skip
            if not self._slot(1, HOME, choices):
                return False
        return all(
            self._slot(n, FREE, [
                (self._groups[c], self._shard({}, e, c)) for c in cells if self._open(e, c)
            ])
            for e, n in times.items()
        )  # fmt: skip

    def _on_one_machine(
        self, block: BlockView, machines: list[int], pinned: tuple[int, ...] | None
    ) -> bool:
        groups = sorted({int(self._cells.group_of[m]) for m in machines})
        inside = [np.flatnonzero(self._cells.cell_group == g).tolist() for g in groups]
        if any(len(cells) > 1 for cells in inside) or pinned is not None:
            sizes = [len(self._instance.machines[m]) for m in machines]
            if block.shared and block.distinct and block.count > max(sizes, default=0):
                return False
            return self._anywhere(block, [c for cells in inside for c in cells])
        choices = []
        for group, (cell,) in zip(groups, inside, strict=True):
            terms: Terms = {}
            part = block.shared and block.distinct
            if part and block.count > max(self._machine_sizes(group)):
                continue
            if all(self._open(e, cell) for e in set(block.entries.tolist())):
                for position in range(block.count):
                    self._shard(terms, block.entry(position), cell)
                if block.index == self._home:
                    self._as_chief(terms, block.entry(0), cell)
                choices.append((group, terms))
        return self._slot(1, HOME if block.index == self._home else FREE, choices)

    def _whole_machines(self, block: BlockView, machines: list[int]) -> bool:
        largest_first = sorted(machines, key=lambda m: -len(self._instance.machines[m]))
        one_of = {int(self._cells.group_of[m]): m for m in largest_first}
        of_group = {g: self._whole(block, m) for g, m in sorted(one_of.items())}
        choices = [(g, terms) for g, terms in of_group.items() if terms is not None]
        fit = sum(of_group[int(self._cells.group_of[m])] is not None for m in machines)
        if block.distinct and fit < block.count:
            return False
        if block.index != self._home:
            return self._slot(block.count, FREE, choices)
        return self._slot(1, HOME, choices) and self._slot(block.count - 1, FREE, choices)

    def _machine_sizes(self, group: int) -> list[int]:
        pairs = zip(self._cells.group_of.tolist(), self._instance.machines, strict=True)
        return [len(ranks) for g, ranks in pairs if g == group]

    def _whole(self, block: BlockView, machine: int) -> Terms | None:
        terms: Terms = {}
        for position, rank in enumerate(self._instance.machines[machine]):
            entry, cell = block.entry(position), self._cell_of[rank]
            if not self._open(entry, cell):
                return None
            self._shard(terms, entry, cell)
        if self._apart:
            self._cover(terms, machine, set(block.entries.tolist()))
        return terms
