"""DLRMv4's environment: placements by hand; batch, exchange, codec; notes on what is not read.

Shell texts: what sourcing them would set, and what is refused.
"""

import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from milp_planner.errors import BadInput, FallsShort
from milp_planner.inputs.constraints import PinSpec
from milp_planner.integrations import exports
from milp_planner.integrations.exports import dlrmv4, with_workload
from milp_planner.integrations.exports.shell import assignments
from tests.corpus import mistakes

from . import plans

TABLES = (plans.static("item_id"), plans.static("album_id"), plans.static("uid"))
SMALL = plans.model(*TABLES)


def test_written_by_hand() -> None:
    """Every type is listed; a data-parallel table is placed by auto, as hbm would stop TorchRec."""
    plan = plans.chosen_plan(
        {
            "item_id": "table_wise/HBM_ONLY",
            "album_id": "column_wise:2/HBM_ONLY",
            "uid": "data_parallel/HBM_ONLY",
        },
        *TABLES,
    )
    comment, text = dlrmv4.write(plan).split("\n", 3)[:3], dlrmv4.write(plan).split("\n", 3)[3]
    assert all(line.startswith("# ") for line in comment) and "torchrec-callback" in comment[2]
    assert text == (
        "export EMB_PLACEMENT=hbm\n"
        "export EMB_PLACEMENT_OVERRIDES=uid=auto\n"
        "export EMB_SHARDING_OVERRIDES="
        "item_id=table_wise,album_id=column_wise,uid=data_parallel\n"
        "export BATCH_SIZE=64\n"
        "export SPARSE_A2A_FWD=fp32\n"
        "export SPARSE_A2A_BWD=fp32\n"
        "export EC_INDEX_DEDUP=0\n"
        "export HBM_CAP_GB=80\n"
    )


@pytest.mark.parametrize(
    ("option", "sentence"), mistakes(__file__, "what would stop the trainer is refused")
)
def test_what_would_stop_the_trainer_is_refused(option: str, sentence: str) -> None:
    """Types that its sharder does not offer, and host memory, which its planner does not have."""
    plan = plans.chosen_plan({"uid": option}, plans.static("uid"))
    with pytest.raises(FallsShort, match=f"table 'uid'.*{sentence}"):
        dlrmv4.write(plan)


def test_host_memory_by_the_version() -> None:
    """TorchRec before 1.7 takes ddr_cap=0 for 128 GiB, so uvm_caching is written for it; what is
    no version gets a sentence."""
    plan = plans.chosen_plan({"uid": "row_wise/CACHING/0.5"}, plans.static("uid"))
    for version in ("1.4.0", "1.6"):
        written = dlrmv4.environment(plan, {"TORCHREC_VERSION": version})
        assert written["EMB_PLACEMENT_OVERRIDES"] == "uid=uvm_caching"
        assert written["TORCHREC_VERSION"] == version
    for version in ("1.7.0", "1.10", ""):
        with pytest.raises(FallsShort, match="ddr_cap=0"):
            dlrmv4.environment(plan, {"TORCHREC_VERSION": version})
    with pytest.raises(BadInput, match="TORCHREC_VERSION: found 'new'; allowed: a version such as"):
        dlrmv4.has_host_memory({}, "new")


@pytest.mark.parametrize("dedup", [False, True])
@pytest.mark.parametrize("codec", ["stock", "low_memory"])
@pytest.mark.parametrize("wire", ["fp32", "fp16", "bf16"])
def test_what_is_priced_is_what_the_file_says(wire: str, codec: str, dedup: bool) -> None:
    """Whatever the workload, the trainer with the export has it; a default turned off is noted."""
    model = with_workload(SMALL, {"exchange_dtype": wire, "codec": codec, "dedup": dedup})
    plan = plans.plan_of(model)
    runs = dlrmv4.stated(dlrmv4.write(plan), model).workload
    assert (runs.exchange_dtype, runs.exchange_dtype_backward, runs.dedup) == (wire, wire, dedup)
    assert wire == "fp32" or runs.codec == codec
    assert dlrmv4.unlike(dlrmv4.write(plan), model) == []
    notes = " ".join(dlrmv4.notes(plan))
    assert ("EC_INDEX_DEDUP=0, as priced" in notes) == (not dedup)
    assert ("QCOMM_LOWMEM_CODEC=0, as priced" in notes) == (codec == "stock" and wire != "fp32")
    assert ("SPARSE_A2A_FWD=fp32, as priced" in notes) == (wire == "fp32")


def test_what_a_file_does_not_set_is_the_trainers_default() -> None:
    """An empty file: batch 1024, fp16 both ways, low-memory codec, deduplication; each is said."""
    work = dlrmv4.stated("", SMALL).workload
    assert (work.batch_per_rank, work.exchange_dtype, work.exchange_dtype_backward) == (
        1024, "fp16", "fp16"
    )  # fmt: skip
    assert work.codec == "low_memory" and work.dedup
    assert dlrmv4.unlike("BATCH_SIZE=64 SPARSE_A2A_FWD=fp32 EC_INDEX_DEDUP=0", SMALL) == [
        "SPARSE_A2A_BWD=fp16, the trainer's default: exchange_dtype_backward fp16; the model has "
        "fp32",
        "QCOMM_LOWMEM_CODEC=1, the trainer's default: codec low_memory; the model has stock",
    ]
    assert dlrmv4.unlike("BATCH_SIZE=128", SMALL)[0] == (
        "BATCH_SIZE=128: batch_per_rank 128; the model has 64"
    )


RECIPE = """
    # a recipe
    export EMB_PLACEMENT="uvm_caching"   # most of them
    EMB_PLACEMENT_OVERRIDES='item_id = hbm, uid=auto'
    export EMB_SHARDING_OVERRIDES=item_id=cw,album_id=twrw HBM_CAP_GB=90
    """


@pytest.mark.parametrize(
    ("text", "pins"),
    [
        (RECIPE, {"item_id": PinSpec(mode="HBM_ONLY", sharding_type="column_wise"),
                  "album_id": PinSpec(mode="CACHING", sharding_type="table_row_wise")}),
        ("EMB_SHARDING_OVERRIDES=uid=auto,item_id=rw",
         {"item_id": PinSpec(sharding_type="row_wise")}),
        ("", {}),
    ],
)  # fmt: skip
def test_read_with_aliases_and_defaults(text: str, pins: dict[str, PinSpec]) -> None:
    """Aliases, blanks, comments and missing variables are read as the trainer reads them; ``auto``
    and what is not set fix nothing."""
    assert dlrmv4.read(text, SMALL) == {table.name: PinSpec() for table in SMALL.tables} | pins


@pytest.mark.parametrize(("variables", "sentence"), mistakes(__file__, "dlrmv4, illegal values"))
def test_illegal_values(variables: dict[str, str], sentence: str) -> None:
    """Unknown tables and values are errors here, although the trainer only warns about tables."""
    with pytest.raises(BadInput, match=sentence):
        dlrmv4.read_environment(variables, SMALL)


def test_a_misspelt_variable() -> None:
    """It is an error with its line."""
    with pytest.raises(BadInput, match="line 1: found 'EMB_PLACEMNT'; "):
        dlrmv4.read("export EMB_PLACEMNT=hbm", SMALL)


def test_tables_it_cannot_place() -> None:
    """DLRMv4 has no dynamicemb tables."""
    plan = plans.chosen_plan({}, plans.dynamic("d"))
    with pytest.raises(BadInput, match="'d' is of dynamicemb"):
        dlrmv4.write(plan)


@pytest.mark.parametrize(("variables", "changes"), mistakes(__file__, "workload"))
def test_workload(variables: dict[str, str], changes: dict[str, Any]) -> None:
    """Precision, codec (none if nothing is encoded), batch and deduplication are read."""
    text = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    assert dlrmv4.workload(text, SMALL) == changes
    workload = with_workload(SMALL, changes).workload
    for field, value in changes.items():
        assert getattr(workload, field) == value


@pytest.mark.parametrize(("name", "value", "sentence"), mistakes(__file__, "illegal workloads"))
def test_illegal_workloads(name: str, value: str, sentence: str) -> None:
    """Values that the trainer would refuse are refused, with the allowed ones."""
    with pytest.raises(BadInput, match=f"{name}.*{sentence}"):
        dlrmv4.workload(f"{name}={value}", SMALL)


def test_a_recipe_as_people_write_it() -> None:
    """Shell defaults, continued lines, several assignments in a line, comments."""
    text = """
# recipe
    export EMB_SHARDING_OVERRIDES="${EMB_SHARDING_OVERRIDES:-item_id=row_wise,\\
uid=column_wise}"
    BATCH_SIZE=512 HBM_CAP_GB=90 EC_INDEX_DEDUP="${EC_INDEX_DEDUP:-}" # the last is left unset
    export HALF=fp16; export SPARSE_A2A_FWD=${HALF} SPARSE_A2A_BWD=${NONE:-bf16}
    """.replace(";", "\n")
    found = dlrmv4.assignments(text)
    assert found == {
        "EMB_SHARDING_OVERRIDES": "item_id=row_wise,uid=column_wise", "BATCH_SIZE": "512",
        "HBM_CAP_GB": "90", "HALF": "fp16", "SPARSE_A2A_FWD": "fp16", "SPARSE_A2A_BWD": "bf16",
    }  # fmt: skip


def test_what_is_not_read_is_said() -> None:
    """HBM_CAP_GB is the planner's, not the rank's; names without a meaning here are listed."""
    cap, others = dlrmv4.unread("HBM_CAP_GB=90 EMB_PLACEMENT=hbm MAX_SEQ_LEN=4096 SEED=1")
    assert "HBM_CAP_GB=90" in cap and "the cluster keeps its hbm" in cap and "90GiB" not in cap
    assert others == "not read: MAX_SEQ_LEN, SEED"
    assert dlrmv4.unread("EMB_PLACEMENT=hbm") == []
    assert exports.unread("{}", "torchrec") == []
    assert exports.workload("{}", "tzrec", SMALL) == {}


def test_a_codec_by_its_memory() -> None:
    """2.5 times the input is the stock codec, 1.5 times the other; no codec, no variable."""
    for factor, value in ((2.5, "0"), (1.5, "1")):
        model = with_workload(SMALL, {"exchange_dtype": "fp16", "codec_peak_factor": factor})
        assert dlrmv4.environment(plans.plan_of(model))["QCOMM_LOWMEM_CODEC"] == value
    assert "QCOMM_LOWMEM_CODEC" not in dlrmv4.environment(plans.plan_of(SMALL))


def test_what_cannot_be_written_is_refused() -> None:
    """An exchange in fp8, a codec of another size, or a table with a type of its own has no
    variable."""
    own = plans.model(plans.static("uid"), plans.static("item_id", exchange_dtype="fp16"))
    thrice = {"exchange_dtype": "fp16", "codec_peak_factor": 3.0}
    for model, sentence in (
        (with_workload(SMALL, {"exchange_dtype": "fp8"}), "fp8 on the wire; SPARSE_A2A_FWD allows"),
        (with_workload(SMALL, thrice), "needs 3 times its input"),
        (own, "'item_id' has an exchange_dtype of its own"),
    ):
        with pytest.raises(FallsShort, match=sentence):
            dlrmv4.write(plans.plan_of(model))
    assert "also item_id" in dlrmv4.unlike("EMB_PLACEMENT=hbm", own)[-1]


@pytest.mark.parametrize(("hbm", "written"), [("3900MiB", "3"), ("259GiB", "259"), ("260GiB", "")])
def test_memory_is_lowered_but_never_raised(hbm: str, written: str) -> None:
    """Ranks with less than the trainer's 260 GiB write their whole GiB; others nothing."""
    plan = plans.plan_of(SMALL, on=plans.cluster(hbm=hbm))
    assert dlrmv4.environment(plan).get("HBM_CAP_GB", "") == written
    said = dlrmv4.unread(dlrmv4.write(plan))
    assert [f"HBM_CAP_GB={written} " in each for each in said] == [True] * bool(written)


NAMES = st.text(st.characters(min_codepoint=33, exclude_categories=("Cs", "Cc", "Z")), min_size=1)


def found(text: str) -> dict[str, str]:
    """The last value of every variable."""
    return {name: value for _, name, value in assignments(text)}


@given(NAMES)
def test_any_quoted_value_is_read_back(value: str) -> None:
    """What shlex quotes, ``$(date)``, ``${Z}`` and ``1e6`` among it, is the same text again."""
    assert found(f"export Z=other\nA={shlex.quote(value)}")["A"] == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Z=b A='${Z}'", "${Z}"),
        ("Z=b A='$Z'", "$Z"),
        ("A='$(date)'", "$(date)"),
        ('Z=b A="${Z}$Z"', "bb"),
        ("Z=b A=${Z}${Y:-c}", "bc"),
        (r'Z=b A="\${Z}\\"', "${Z}\\"),
        (r"Z=b A=\$Z\ d", "$Z d"),
        ("A=b#c # comment", "b#c"),
        ("A=b\\\nc", "bc"),
        ('A="b\\\nc"', "bc"),
        ("A=1; A=2", "2"),
        ("A='b'\"c\"d", "bcd"),
        ("A=", ""),
    ],
)
def test_quotes_decide_what_is_replaced(text: str, value: str) -> None:
    """Nothing is replaced between single quotes or after a backslash, as in a shell."""
    assert found(text)["A"] == value


@pytest.mark.parametrize(
    "line",
    ["A=$(date)", 'A="$(date)"', "A=`date`", 'A="`date`"', "A='b", 'A="b', "source x", "A=1 && B=2",
     "A=1 | B=2", "1A=2", "A=${B:=c}", "A=$"],
)  # fmt: skip
def test_other_syntax_is_refused_with_its_line(line: str) -> None:
    """Commands, pipes, open quotes and further expansions: the sentence names the line."""
    with pytest.raises(BadInput, match="line 3: "):
        found(f"B=1\n# comment\n{line}")


def test_lines_are_counted_through_continuations() -> None:
    """An assignment has the line on which its word begins."""
    lines = [line for line, _, _ in assignments("A=1\\\n2\nB='x\ny' C=3\nD=4")]
    assert lines == [1, 3, 4, 5]
