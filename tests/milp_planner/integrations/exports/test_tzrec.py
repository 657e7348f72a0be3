"""TorchEasyRec fragments, by hand."""

from typing import Any

import pytest

from milp_planner.errors import BadInput, FallsShort
from milp_planner.integrations.exports import tzrec, with_workload
from tests.corpus import mistakes

from . import plans

TABLES = (plans.static("a", num_features=2), plans.dynamic("d", features=["click"]))
CHOICE = {"a": "row_wise/HBM_ONLY", "d": "row_wise/CACHING/0.3/roundrobin"}


def test_by_hand() -> None:
    """Each feature of a shared table gets the table's constraints; dynamicemb tables get their
    capacity, but no ratio, which would stop the trainer."""
    text = tzrec.write(plans.chosen_plan(CHOICE, *TABLES))
    assert text.count("feature_configs {") == 3
    assert text.count('embedding_name: "a"') == 2
    assert 'sharding_types: "row_wise"\n      compute_kernels: "fused"' in text
    assert 'feature_name: "click"' in text
    assert "max_capacity: 5000\n      score_strategy" in text and "cache_load_factor" not in text


def test_what_it_leaves_open_is_said() -> None:
    """The notes name what the config has no field for, and a data_parallel table, whose learning
    rate and state are the dense optimizer's."""
    choose = {"a": "column_wise:2/CACHING/0.3", "d": CHOICE["d"]}
    notes = " ".join(tzrec.notes(plans.chosen_plan(choose, *TABLES)))
    assert "mode and ratio of dynamicemb tables (CACHING at 3/10)" in notes
    assert "cache_load_factor would stop its planner" in notes
    assert "dense_optimizer" not in notes
    choose = {"a": "data_parallel/HBM_ONLY", "d": CHOICE["d"]}
    notes = " ".join(tzrec.notes(plans.chosen_plan(choose, *TABLES)))
    assert "data_parallel tables (a) are trained by dense_optimizer, not sparse_optimizer" in notes
    assert "its state in place of the one counted here" in notes


@pytest.mark.parametrize(("old", "new", "sentence"), mistakes(__file__, "illegal values"))
def test_illegal_values(old: str, new: str, sentence: str) -> None:
    """Unknown tables, words and figures are errors."""
    text = tzrec.write(plans.chosen_plan(CHOICE, *TABLES))
    text = text.replace("score_strategy", "cache_load_factor: 0.3\n      score_strategy")
    assert old in text
    with pytest.raises(BadInput, match=sentence):
        tzrec.read(text.replace(old, new), plans.model(*TABLES))


def test_features_of_a_table_must_agree() -> None:
    """Two features with different placements for their shared table are an error."""
    text = tzrec.write(plans.chosen_plan(CHOICE, *TABLES))
    with pytest.raises(BadInput, match="'a': its features disagree"):
        tzrec.read(text.replace('"row_wise"', '"table_wise"', 1), plans.model(*TABLES))


def test_own_fields_of_a_config_are_left_alone() -> None:
    """The other fields of a full config are skipped."""
    text = """
    # comment
    train_input_path: "x"
    feature_configs { id_feature { feature_name: "click" expression: "user:click"
      dynamicemb { max_capacity: 5000 initializer_args { mode: "NORMAL" std_dev: 5e-2 } } } }
    """
    pins = tzrec.read(text, plans.model(*TABLES))
    assert list(pins) == ["d"] and pins["d"].cache_ratio is None


def test_what_it_cannot_say() -> None:
    """Routing rules and eviction scores that the config has no word for are errors."""
    for field, value in (
        ("dist_types", ["continuous"]),
        ("score_strategy", "no_eviction"),
        ("score_strategy", "timestamp+lfu"),
    ):
        plan = plans.chosen_plan({}, plans.dynamic("d", **{field: value}))
        with pytest.raises(BadInput, match="TorchEasyRec"):
            tzrec.write(plan)


@pytest.mark.parametrize("text", ["a {" * 3000, "feature_configs { x: " + "[" * 3000])
def test_deep_text_is_refused(text: str) -> None:
    """The error is a sentence and not the interpreter's recursion limit."""
    with pytest.raises(BadInput, match="not a text-format config"):
        tzrec.read(text, plans.model(plans.static("a")))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [({"exchange_dtype_backward": "bf16"}, "bf16 on the wire"), ({"dedup": True}, "dedup: false")],
)
def test_what_its_sharders_do_not_do_is_refused(changes: dict[str, Any], sentence: str) -> None:
    """TorchEasyRec takes TorchRec's default sharders: fp32 on the wire, no deduplication."""
    plan = plans.plan_of(with_workload(plans.model(plans.static("a")), changes))
    with pytest.raises(FallsShort, match=sentence):
        tzrec.write(plan)
