"""The stand-alone checker: every rule by hand."""

import pytest

from formulations import checker
from tests.formulations.by_hand import (
    ALL,
    TWO,
    Document,
    block,
    bound,
    exactly,
    infeasible,
    instance,
    option,
    proves,
    shard,
    worked_example,
)


def test_worked_example() -> None:
    """The page's tree certifies 22 and stays open at 23."""
    exactly(*worked_example())


class TestBareRule:
    """Floors and the largest shard on one rank, without any vector."""

    def test_largest_shard(self) -> None:
        """One shard of 7 costs 7 wherever it is."""
        exactly(instance([[option("o", block("any_rank", shard(7)))]]), bound(7))

    def test_floors_below(self) -> None:
        """A shard of 7 beside every_rank blocks of 2 and of 5 at least: 14."""
        uneven = block("every_rank", *(shard(c) for c in (5, 9, 5, 5)))
        tables = [
            [option("o", block("any_rank", shard(7)))],
            [option("o", block("every_rank", shard(2)))],
            [option("o", uneven), option("dear", block("every_rank", shard(6)))],
        ]
        exactly(instance(tables), bound(14))

    def test_excess_of_uneven_floor(self) -> None:
        """every_rank of 5 9 5 5 puts 9 on rank 1, over a floor of 2 there."""
        uneven = block("every_rank", *(shard(c) for c in (5, 9, 5, 5)))
        tables = [[option("o", uneven)], [option("o", block("every_rank", shard(2)))]]
        exactly(instance(tables), bound(11))

    def test_one_machine_floor_in_one_machine(self) -> None:
        """In a cluster of one machine, one_machine covers all ranks, count times."""
        twice = block("one_machine", shard(3), count=2, distinct=False)
        tables = [[option("o", twice)], [option("o", block("any_rank", shard(4)))]]
        exactly(instance(tables, **TWO), bound(10))
        assert not proves(instance(tables), bound(5))

    def test_step_time_adds_phases(self) -> None:
        """Different phases may peak on different ranks, and each counts."""
        tables = [[option("o", block("any_rank", shard([3, 4])))],
                  [option("o", block("every_rank", shard([1, 2])))]]  # fmt: skip
        exactly(instance(tables, "step_time", phases=["p", "q"]), bound(10))

    def test_resource_without_costs(self) -> None:
        """A shard of 5 beside floors of 5 does not fit 9, in a proof of infeasibility too."""
        tables = [[option("o", block("any_rank", shard(0, hbm=5)))],
                  [option("o", block("every_rank", shard(0, hbm=5)))]]  # fmt: skip
        hbm = [{"name": "hbm", "scope": "rank", "capacity": [9, 9, 5, 9]}]
        assert proves(instance(tables, resources=hbm), infeasible())
        hbm = [{"name": "hbm", "scope": "rank", "capacity": [9, 10, 5, 9]}]
        assert not proves(instance(tables, resources=hbm), infeasible())

    def test_machine_resources_are_not_its_business(self) -> None:
        """The bare rule tests only resources of scope rank."""
        tables = [[option("o", block("any_rank", shard(0, ddr=5)))]] * 2
        ddr = [{"name": "ddr", "scope": "machine", "capacity": 9}]
        one = instance(tables, resources=ddr, **TWO)
        assert not proves(one, infeasible())
        assert proves(one, infeasible({"capacity": {"ddr": 1}}))


class TestPrices:
    """The least price of every kind of block, each exact by one vector on all ranks."""

    def test_cost_rows_average(self) -> None:
        """Three shards of 5 on two ranks: 15 over 2 ranks is 8 at least."""
        tables = [[option("o", block("any_rank", shard(5)))]] * 3
        exactly(instance(tables, **TWO), bound(8, ALL))

    @pytest.mark.parametrize(
        ("where", "most"),
        [
            (block("any_rank", shard(6), count=2), 6),  # 12 over 2
            (block("any_rank_of_one_machine", shard(6), count=2), 6),
            (block("one_machine", shard(7)), 7),
            (block("every_rank", shard(4), shard(9)), 9),
            (block([1, 0], shard(4), shard(9)), 9),
            (block("any_rank", shard(4), shard(8), shard(1), count=3), 8),
        ],
    )
    def test_kinds(self, where: Document, most: int) -> None:
        """What such a table costs on two ranks, by the sum over ranks or the largest shard."""
        tables = [[option("o", where)]]
        exactly(instance(tables, **TWO), bound(most, ALL))

    def test_places_by_capacity(self) -> None:
        """Shards that fit only on rank 3 add up there."""
        hbm = [{"name": "hbm", "scope": "rank", "capacity": [1, 1, 1, 20]}]
        tables = [[option("o", block("any_rank", shard(5, hbm=2)))]] * 3
        exactly(
            instance(tables, resources=hbm), bound(15, {"cost": {"busiest_rank": [0, 0, 0, 1]}})
        )

    def test_among(self) -> None:
        """Shards add up on the ranks and machines that ``among`` allows."""
        row = {"cost": {"busiest_rank": [0, 0, 1, 1]}}
        ranks = [[option("o", block("any_rank", shard(5), among=[2]))]] * 3
        exactly(instance(ranks), bound(15, {"cost": {"busiest_rank": [0, 0, 1, 0]}}))
        machine = [
            [option("o", block("any_rank_of_one_machine", shard(5), among=[1], count=2))]
        ] * 3
        exactly(instance(machine), bound(15, row))
        whole = [[option("o", block("one_machine", shard(5), among=[1]))]] * 3
        exactly(instance(whole), bound(15, row))

    def test_distinct_needs_places(self) -> None:
        """Two ranks cannot take three distinct shards, nor two machines a block of three."""
        three = block("any_rank", shard(0), count=3, distinct=True)
        assert proves(instance([[option("o", three)]], **TWO), infeasible({}))
        assert not proves(instance([[option("o", three)]]), infeasible({}))
        assert proves(
            instance([[option("o", block("one_machine", shard(0), count=3))]]), infeasible({})
        )
        again = block("one_machine", shard(0), count=3, distinct=False)
        assert not proves(instance([[option("o", again)]]), infeasible({}))

    def test_cluster_and_total(self) -> None:
        """Under total, shards on no rank and negative costs count."""
        tables = [[option("a", block("cluster", shard(-5), count=3))],
                  [option("b", block("any_rank", shard(7)))]]  # fmt: skip
        exactly(instance(tables, "total"), bound(-8, {"cost": {"total": 1}}))
        exactly(instance(tables, "total"), bound(-8, {"cost": {"total": 3}}))

    def test_cluster_resource(self) -> None:
        """Every shard uses the cluster's resource once, on a rank or on none."""
        tables = [[option("a", block("cluster", shard(0, net=2), count=2))],
                  [option("b", block("every_rank", shard(0, net=1)))]]  # fmt: skip
        for capacity, proved in ((7, True), (8, False)):
            net = [{"name": "net", "scope": "cluster", "capacity": capacity}]
            document = instance(tables, resources=net)
            assert proves(document, infeasible({"capacity": {"net": 1}})) is proved

    def test_step_time_takes_the_largest_depth(self) -> None:
        """The target counts D times, where D is the largest sum of multipliers of any one phase."""
        tables = [[option("o", block("every_rank", shard([3, 5])))]]
        document = instance(tables, "step_time", phases=["p", "q"], **TWO)
        assert proves(document, bound(8, {"cost": {"p": 1, "q": 1}}, nodes=[{"use": [0]}]))
        uneven = [[option("o", block([0], shard([4, 0])), block([1], shard([0, 4])))]] * 2
        document = instance(uneven, "step_time", phases=["p", "q"], **TWO)
        exactly(document, bound(16, {"cost": {"p": [1, 0], "q": [0, 1]}}))
        assert not proves(document, bound(16, {"cost": {"p": [2, 0], "q": [0, 1]}}))


class TestPins:
    """Pinned options and ranks."""

    def pinned(self, where: Document, ranks: list[int]) -> Document:
        """Three tables of this block, each pinned on the ranks."""
        tables = [[option("x", block("any_rank", shard(0))), option("o", where)]] * 3
        pins = [{"table": f"t{i}", "option": "o", "ranks": [ranks]} for i in range(3)]
        return instance(tables, pins=pins)

    def test_ranks(self) -> None:
        """Pinned shards of 5 on rank 2 add up to 15 there; on 2 and 2 to 30; on 1 or 2 to 0."""
        row = {"cost": {"busiest_rank": [0, 0, 1, 0]}}
        exactly(self.pinned(block("any_rank", shard(5)), [2]), bound(15, row))
        exactly(self.pinned(block("any_rank", shard(5), count=2), [2, 2]), bound(30, row))
        assert not proves(self.pinned(block("any_rank", shard(5), count=2), [1, 2]), bound(6, row))

    def test_machines(self) -> None:
        """The machine kinds stay on the machines of the pin."""
        row = {"cost": {"busiest_rank": [0, 0, 1, 1]}}
        exactly(self.pinned(block("one_machine", shard(5)), [2, 3]), bound(15, row))
        one = block("any_rank_of_one_machine", shard(5), count=2)
        exactly(self.pinned(one, [3, 3]), bound(30, {"cost": {"busiest_rank": [0, 0, 0, 1]}}))

    def test_forbidden(self) -> None:
        """A forbidden option is not allowed; a pinned and forbidden one leaves no plan."""
        tables = [
            [option("a", block("any_rank", shard(1))), option("b", block("any_rank", shard(9)))]
        ]
        entry = {"table": "t0", "option": "a"}
        exactly(instance(tables, forbidden=[entry]), bound(9))
        assert proves(instance(tables, forbidden=[entry], pins=[entry]), infeasible())


class TestLargestShards:
    """Rows about the largest shard of a table, over all ranks or a machine's."""

    def test_over_all_ranks(self) -> None:
        """A shard of 6 on floors of 1: the largest-shard row alone gives 6 + 1."""
        tables = [[option("o", block("any_rank", shard(6)))],
                  [option("o", block("every_rank", shard(1)))]]  # fmt: skip
        exactly(instance(tables), bound(7, {"largest_cost": {"busiest_rank": [[0, 1]]}}))

    def test_mixed_with_costs(self) -> None:
        """Cost rows, with or without a largest-shard row, prove no more than the optimum."""
        wide, single = block("every_rank", shard(4)), block("any_rank", shard(12))
        tables = [[option("wide", wide), option("single", single)]] * 4
        row = {"cost": {"busiest_rank": 1}, "largest_cost": {"busiest_rank": [[0, 4]]}}
        document = instance(tables)
        truth = 12  # four single shards on four ranks
        assert not proves(document, bound(truth + 1, row))
        assert not proves(document, bound(truth + 1, {"cost": {"busiest_rank": 1}}))

    def test_over_a_machine(self) -> None:
        """On machine 1, its largest shard and the one_machine block that covers it add up."""
        tables = [[option("o", block("any_rank", shard(6), among=[2, 3]))],
                  [option("o", block("one_machine", shard(5), among=[1]))]]  # fmt: skip
        row = {"largest_cost": {"busiest_rank": [[0, 1, 1]]}}
        exactly(instance(tables), bound(11, row))
        elsewhere = {"largest_cost": {"busiest_rank": [[0, 1, 0]]}}
        assert not proves(instance(tables), bound(11, elsewhere))

    def test_covers_count_once_in_one_machine(self) -> None:
        """A cluster of one machine: a row about it is the row about all ranks."""
        tables = [[option("o", block("any_rank", shard(6)))],
                  [option("o", block("one_machine", shard(5)))]]  # fmt: skip
        for row in ([0, 1], [0, 1, 0]):
            document = instance(tables, **TWO)
            exactly(document, bound(11, {"largest_cost": {"busiest_rank": [row]}}))

    def test_use(self) -> None:
        """The largest use must fit the largest capacity of a rank of the machine."""
        tables = [[option("o", block("any_rank", shard(0, hbm=6), among=[2, 3]))],
                  [option("o", block("one_machine", shard(0, hbm=5), among=[1]))]]  # fmt: skip
        for capacity, proved in (([99, 99, 5, 10], True), ([0, 0, 5, 11], False)):
            hbm = [{"name": "hbm", "scope": "rank", "capacity": capacity}]
            certificate = infeasible({"largest_use": {"hbm": [[0, 1, 1]]}})
            assert proves(instance(tables, resources=hbm), certificate) is proved


class TestMoves:
    """Limits on what moves."""

    def tables(self) -> Document:
        """Three tables: current option 9, another 1; at most one may move, or 10 bytes."""
        stay, go = block([0], shard(9)), block([0], shard(1, move_bytes=6))
        current = {f"t{i}": {"option": "stay", "ranks": [[0]]} for i in range(3)}
        return instance([[option("stay", stay), option("go", go)]] * 3, current=current)

    @pytest.mark.parametrize(("key", "limit"), [("moved_tables", 1), ("moved_bytes", 10)])
    def test_limit(self, key: str, limit: int) -> None:
        """With one move, 9 + 9 + 1 is the least: cost 1 a unit, a move worth its saving of 8."""
        weight = 8 if key == "moved_tables" else 4
        document = self.tables() | {f"max_{key}": limit}
        factor = 1 if key == "moved_tables" else 3
        vector = {"cost": {"busiest_rank": [factor, 0, 0, 0]}, key: weight}
        target = 19 if key == "moved_tables" else 14  # 27 - 8; 27 - 40 / 3, rounded up
        exactly(document, bound(target, vector))

    def test_option_is_gone(self) -> None:
        """A table whose current option no longer exists has to move."""
        document = self.tables() | {"max_moved_tables": 0}
        document["current"]["t0"]["option"] = "gone"
        assert proves(document, infeasible({"moved_tables": 1}))


#: Each table pays 8 for the level at which it is cheap: 1 + 8 or 9, so 9 at either level.
FUSED = {"cost": {"busiest_rank": [1, 0, 0, 0]}, "fusion": {"g": [[0, 0, 8], [1, 1, 8]]}}


class TestFusion:
    """Rows of fusion: a group stands at one level."""

    def tables(self) -> Document:
        """At level 0 one table is cheap, at level 1 the other."""

        def table(a: int, b: int) -> list[Document]:
            return [option("a", block([0], shard(a)), g=0), option("b", block([0], shard(b)), g=1)]

        return instance([table(1, 9), table(9, 1)])

    def test_one_level(self) -> None:
        """The tables cost 10 together at either level, though each alone could cost 1."""
        exactly(self.tables(), bound(10, FUSED))
        assert not proves(self.tables(), bound(3, {"cost": FUSED["cost"]}))

    def test_free_option(self) -> None:
        """An option without a group pays nothing."""
        document = self.tables()
        document["tables"][1]["options"].append(option("free", block([0], shard(4))))
        exactly(document, bound(5, FUSED))

    def test_no_common_level(self) -> None:
        """Tables whose levels have nothing in common leave no plan."""
        document = self.tables()
        for t in (0, 1):
            document["tables"][t]["options"].pop(t)
        assert proves(document, infeasible({"fusion": {"g": [[0, 1, 1], [1, 0, 1]]}}))
        assert not proves(self.tables(), infeasible({"fusion": {"g": [[0, 1, 1], [1, 0, 1]]}}))

    def test_malformed(self) -> None:
        """Too few numbers, an unknown table or a negative number are errors."""
        for row in ([0, 1], [2, 0, 1], [-1, 0, 1], [0, 0, -1]):
            with pytest.raises(checker.Unreadable):
                proves(self.tables(), infeasible({"fusion": {"g": [row]}}))


class TestSplits:
    """Splits must cover every case."""

    def test_options(self) -> None:
        """A list may be empty; an option in no list leaves the node open."""
        tables = [
            [option("a", block("any_rank", shard(5))), option("b", block("any_rank", shard(6)))]
        ]
        leaves = [{}, {}]
        covered = [{"table": 0, "options": [[0], [1]]}, *leaves]
        assert proves(instance(tables), bound(5, nodes=covered))
        hole = [{"table": 0, "options": [[0], []]}, *leaves]
        document = instance([[*tables[0], option("c", block("any_rank", shard(1)))]])
        assert not proves(document, bound(5, nodes=hole))

    def test_home(self) -> None:
        """A split by machine fixes a table's first shard; its second may lie anywhere."""
        two = block("any_rank", shard(6), count=2)
        tables = [[option("o", two)]] * 3
        split = {"table": 0, "machines": [[0], [1]]}
        document = instance(tables, machines=[[0], [1]])
        # three times two shards of 6 on two ranks: 18; the sum alone says it
        assert proves(
            document, bound(18, ALL, nodes=[split | {"use": []}, {"use": [0]}, {"use": [0]}])
        )
        only = bound(12, {"cost": {"busiest_rank": [0, 1]}}, nodes=[split, {}, {"use": [0]}])
        single = instance([[option("o", two)]], machines=[[0], [1]])
        assert not proves(single, only)

    def test_home_and_largest_shard(self) -> None:
        """Whichever machine the first shard is on, it adds to what covers that machine."""
        tables = [[option("o", block("any_rank", shard(6)))],
                  [option("a", block("one_machine", shard(5), among=[0]))],
                  [option("b", block("one_machine", shard(5), among=[1]))]]  # fmt: skip
        rows = [{"largest_cost": {"busiest_rank": [[0, 1, q]]}} for q in (0, 1)]
        split = {"table": 0, "machines": [[0], [1]]}
        nodes = [split, {"use": [0]}, {"use": [1]}]
        exactly(instance(tables), bound(11, *rows, nodes=nodes))
        exactly(instance(tables), bound(11, *rows))
        assert not proves(instance(tables), bound(7, rows[0]))


class TestNoTables:
    """An instance without tables."""

    def test_right_hand_side_below_zero(self) -> None:
        """An instance without tables costs 0, as a vector of costs proves."""
        exactly(instance([]), bound(0, ALL))
        assert not proves(instance([]), bound(0))
        assert not proves(instance([]), infeasible({}))
