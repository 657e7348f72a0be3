"""Reading and writing instance files: equal after a round trip, one sentence for each mistake.

The published JSON schema and the reader agree.
"""

import copy
import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from formulations import InstanceError, read_instance, write_instance
from formulations.instance import strict_json
from formulations.instance.file import instance_from_dict, instance_to_dict
from tests.formulations.by_hand import block, option
from tests.formulations.examples import every_kind

Edit = Callable[[dict[str, Any]], Any]


def document() -> dict[str, Any]:
    """A valid document with every kind of place, pins, forbidden options and a current plan."""
    result = instance_to_dict(every_kind())
    tw = block("any_rank", {"cost": [1, 1], "move_bytes": 5}, among=[0, 2])
    result["tables"][1]["options"].append(option("tw", tw, g=3))
    result["pins"] = [{"table": "any", "option": "tw", "ranks": [[2]]}]
    result["forbidden"] = [{"table": "any", "option": "cw"}]
    result["current"] = {"any": {"option": "gone", "ranks": [[0]]}}
    result["max_moved_tables"] = 1
    result["reference"] = [{"planner": "by hand", "seconds": 1.5}]
    return result


@pytest.mark.parametrize("name", ["i.json", "i.json.gz"])
def test_round_trip(tmp_path: Path, name: str) -> None:
    """What is written reads back equal, plain and gzipped, reference included."""
    instance = instance_from_dict(document())
    write_instance(instance, tmp_path / name)
    again = read_instance(tmp_path / name)
    assert again.fingerprint == instance.fingerprint
    assert again.reference == instance.reference
    assert instance_to_dict(again) == instance_to_dict(instance)
    assert not list(tmp_path.glob("*.tmp"))


def test_writing_is_reproducible(tmp_path: Path) -> None:
    """The same instance gives the same bytes."""
    for name in ("a.json.gz", "b.json.gz"):
        write_instance(every_kind(), tmp_path / name)
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()


def _option(d: dict[str, Any], table: int = 0) -> dict[str, Any]:
    option: dict[str, Any] = d["tables"][table]["options"][0]
    return option


def _block(d: dict[str, Any], table: int = 0) -> dict[str, Any]:
    block: dict[str, Any] = _option(d, table)["blocks"][0]
    return block


MISTAKES: list[tuple[str, Edit, str]] = [
    ("format", lambda d: d.update(format="other/1"), "allowed: 'milp-planner-instance/1'"),
    ("unknown field", lambda d: d.update(tabels=[]), "did you mean 'tables'"),
    ("missing field", lambda d: d.pop("objective"), "'objective' is missing"),
    ("objective", lambda d: d.update(objective="sum"), "allowed: total, busiest_rank, step_time"),
    ("no ranks", lambda d: d.update(ranks=0, machines=[]), "at least one rank"),
    ("rank count", lambda d: d.update(ranks=5), "ranks is 5, but machines lists 4"),
    ("partition", lambda d: d.update(machines=[[0, 1], [1, 3]]), "partition the ranks"),
    ("empty machine", lambda d: d.update(machines=[[0, 1, 2, 3], []]), "at least one rank"),
    ("phases", lambda d: d.update(phases=["a", "a"]), "none twice"),
    ("scope", lambda d: d["resources"][0].update(scope="pod"), "allowed: rank, machine, cluster"),
    ("capacity", lambda d: d["resources"][0].update(capacity=[1]), "1 capacities for 4 places"),
    ("negative capacity", lambda d: d["resources"][1].update(capacity=-1), "in [0, 2^53)"),
    ("resource twice", lambda d: d["resources"][1].update(name="hbm"), "appears twice"),
    ("no options", lambda d: d["tables"][0].update(options=[]), "table 'every' has no options"),
    ("no blocks", lambda d: _option(d).update(blocks=[]), "an option needs a block"),
    ("table twice", lambda d: d["tables"][1].update(name="every"), "'every' appears twice"),
    ("option twice", lambda d: d["tables"][1]["options"][1].update(name="cw"), "appears twice"),
    ("where", lambda d: _block(d).update(where="all"), "allowed: every_rank, any_rank"),
    ("among", lambda d: _block(d).update(among=[0]), "no meaning for every_rank"),
    ("rank range", lambda d: _block(d, 4).update(where=[3, 9]), "must be in 0…3"),
    ("rank repeats", lambda d: _block(d, 4).update(where=[3, 3]), "without repeats"),
    ("shard count", lambda d: _block(d)["shards"].pop(), "3 shards for 4 positions"),
    ("no shards", lambda d: _block(d).update(shards=[]), "at least one shard"),
    ("count", lambda d: _block(d, 1).update(count=0), "count must be 1 or more"),
    ("costs", lambda d: _block(d, 1)["shards"][0].update(cost=[1]), "1 costs, the instance 2"),
    ("negative cost", lambda d: _block(d, 1)["shards"][0].update(cost=[-1, 0]), "under the obj"),
    ("float cost", lambda d: _block(d, 1)["shards"][0].update(cost=[0.5, 0]), "must be an integer"),
    ("bool cost", lambda d: _block(d, 1)["shards"][0].update(cost=[True, 0]), "an integer"),
    ("huge cost", lambda d: _block(d, 1)["shards"][0].update(cost=[2**53, 0]), "below 2^53"),
    ("sum", lambda d: _block(d, 1).update(count=2**20) or _block(d, 1)["shards"][0].update(
        cost=[2**52, 0]), "beyond 2^62"),
    ("unknown resource", lambda d: _block(d)["shards"][0]["use"].update(hbn=1), "unknown resource"),
    ("cluster use", lambda d: _block(d, 5)["shards"][0]["use"].update(hbm=1), "cluster resources"),
    ("pin table", lambda d: d["pins"][0].update(table="anny"), "did you mean 'any'"),
    ("pin option", lambda d: d["pins"][0].update(option="tx"), "unknown option"),
    ("pin blocks", lambda d: d["pins"][0].update(ranks=[]), "one list for each block"),
    ("moves", lambda d: d.pop("current"), "needs 'current'"),
    ("negative moves", lambda d: d.update(max_moved_tables=-1), "0 or more"),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "says"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES])
def test_mistakes_are_one_sentence(edit: Edit, says: str) -> None:
    """Every kind of mistake is refused in one line that says what is wrong or allowed."""
    wrong = copy.deepcopy(document())
    edit(wrong)
    with pytest.raises(InstanceError) as error:
        instance_from_dict(wrong, "FILE")
    text = str(error.value)
    assert text.startswith("FILE") and says in text and "\n" not in text


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"{", "not valid JSON"),
        (b'{"a": 1, "a": 2}', "appears twice"),
        (b'{"a": NaN}', "not a number"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[]", "an object is needed"),
        (b"[" * 100_000, "nested too deeply"),
        (b"9" * 5000, "too long"),
        (b"[1e999]", "too large for a number"),
        (gzip.compress(b"{}", mtime=0)[:-6], "damaged gzip"),
    ],
)
def test_broken_files(tmp_path: Path, raw: bytes, says: str) -> None:
    """A file that is no instance at all is refused in a sentence that says why."""
    path = tmp_path / "x.json"
    path.write_bytes(raw)
    with pytest.raises(InstanceError, match=says):
        read_instance(path)


@pytest.mark.parametrize("name", ["pipe", "/dev/zero", "folder"])
def test_only_regular_files_are_read(tmp_path: Path, name: str) -> None:
    """A pipe that nobody writes to, an endless device and a folder are refused."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InstanceError, match=r"is not a regular file|is a folder"):
        read_instance(tmp_path / name)


def test_a_compressed_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is larger than the limit, or unpacks to more, is refused."""
    monkeypatch.setattr(strict_json, "MAX_BYTES", 2**20)
    (tmp_path / "x.json").write_bytes(gzip.compress(b" " * 2**23, mtime=0))
    with pytest.raises(InstanceError, match="unpacks to more than 1 MiB, the most that is read"):
        read_instance(tmp_path / "x.json")
    (tmp_path / "x.json").write_bytes(b" " * (2**20 + 1))
    with pytest.raises(InstanceError, match="larger than 1 MiB, the most that is read"):
        read_instance(tmp_path / "x.json")


@pytest.mark.parametrize("name", ["a\0b", "a\x1b[2K", "a\u202eb", "a\nb", "\x7f"])
def test_names_are_printable(name: str) -> None:
    """A name with control characters, or one that reverses the direction of text, is refused."""
    wrong = document()
    wrong["tables"][0]["name"] = name
    with pytest.raises(InstanceError, match=r"tables\[0\]: name holds the control character U\+"):
        instance_from_dict(wrong)


def test_reads_the_torchrec_instances(shared_data: Path) -> None:
    """The recorded TorchRec instances can be read and survive a round trip."""
    for path in sorted((shared_data / "torchrec").glob("torchrec_[25]0x8*.json.gz")):
        instance = read_instance(path)
        text = json.dumps(instance_to_dict(instance))
        assert instance_from_dict(json.loads(text)).fingerprint == instance.fingerprint


def test_a_file_of_another_kind_is_told_by_its_format() -> None:
    """A plan given in place of an instance is refused for its format, not for its fields."""
    with pytest.raises(InstanceError, match=r"format is 'milp-planner-plan/1', allowed: 'milp-"):
        instance_from_dict({"format": "milp-planner-plan/1", "fingerprints": {}})


jsonschema = pytest.importorskip("jsonschema")
DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.fixture(scope="module")
def validator() -> Any:
    """A validator for the published schema."""
    schema = json.loads((DOCS / "schemas" / "instance.schema.json").read_text())
    kind = jsonschema.Draft202012Validator
    kind.check_schema(schema)
    return kind(schema)


def test_valid_documents_fit_the_schema(validator: Any) -> None:
    """What the writer writes, and the example in the docs, fit the schema."""
    validator.validate(document())
    text = (DOCS / "instance-format.md").read_text()
    example = json.loads(text.split("```json")[1].split("```")[0])
    validator.validate(example)
    instance_from_dict(example)


def test_what_the_schema_refuses_the_reader_refuses(validator: Any) -> None:
    """The reader is at least as strict as the schema on every known mistake."""
    refused = 0
    for _, edit, _ in MISTAKES:
        wrong = copy.deepcopy(document())
        edit(wrong)
        if not validator.is_valid(wrong):
            refused += 1
            with pytest.raises(InstanceError):
                instance_from_dict(wrong)
    assert refused >= 15


def test_the_reference_instances_fit_the_schema(validator: Any, shared_data: Path) -> None:
    """A recorded TorchRec instance fits the schema."""
    path = shared_data / "torchrec" / "torchrec_20x8_s0_loose.json.gz"
    validator.validate(json.loads(gzip.decompress(path.read_bytes())))
