"""Ten thousand damaged files: a sentence or a sound value, never a traceback.

Files that once ended in a traceback, or were certified although they are false.
"""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.milp_planner.cli.conftest import Cli, cli
from tests.robustness.damage import CORPUS, corpus, damaged, plain
from tests.robustness.oracle import Wrong, judge

#: 12,500 files in all: 5,000 models, 5,000 clusters, 2,500 instances.
COUNTS = {"model": 5_000, "cluster": 5_000, "instance": 2_500}
KINDS = sorted(COUNTS)


@pytest.mark.parametrize("path", [p for k in KINDS for p in corpus(k)], ids=lambda p: p.name)
def test_the_corpus_is_sound(path: Path) -> None:
    """Every file that damage starts from is accepted, and the oracle agrees."""
    assert judge(path.parent.name, path)


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files(kind: str, tmp_path: Path) -> None:
    """Each is refused in one sentence or accepted as a value that stands every check."""
    files = [(p, p.read_bytes(), plain(p)) for p in corpus(kind)]
    accepted = 0
    for seed in range(COUNTS[kind]):
        path, raw, document = files[seed % len(files)]
        content, wrong = damaged(seed, raw, document)
        target = tmp_path / f"{kind}{path.suffix}"
        target.write_bytes(content)
        try:
            accepted += judge(kind, target, wrong)
        except Exception as error:
            error.add_note(f"seed {seed} of {path.name}")
            raise
    assert COUNTS[kind] // 20 < accepted < COUNTS[kind] // 2  # neither path goes untried


@settings(
    deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.sampled_from(KINDS), st.binary(max_size=60), st.data())
def test_bytes_of_any_kind(tmp_path: Path, kind: str, noise: bytes, data: st.DataObject) -> None:
    """Noise alone, and noise anywhere in a sound file, is read or refused like any other file."""
    path = data.draw(st.sampled_from(corpus(kind)))
    raw = path.read_bytes()
    at = data.draw(st.integers(0, len(raw)))
    for content in (noise, raw[:at] + noise + raw[at:]):
        target = tmp_path / f"{kind}{path.suffix}"
        target.write_bytes(content)
        judge(kind, target)


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("instance", '"level": 3', '"level": 3.0'),
        ("instance", '"ranks": 4', '"ranks": 5'),
        ("instance", "2\n    ]\n   ]", "-2\n    ]\n   ]"),
        ("instance", '"repeat": 3', '"repeat": 9007199254740991'),
        ("model", "name: mixed", "name: mixed\ndescription: 1" + "0" * 400),
        ("cluster", "hbm: 80GiB", "hbm: 80GiB, hbm: 80GiB"),
        ("model", "batch_per_rank: 512", "batch_per_rank: 0"),
    ],
)
def test_the_oracle_would_notice(kind: str, old: str, new: str, tmp_path: Path) -> None:
    """Each of these is refused; were it accepted, the oracle says so."""
    path = next(p for p in corpus(kind) if old in p.read_text("utf-8"))
    target = tmp_path / path.name
    target.write_text(path.read_text("utf-8").replace(old, new, 1), encoding="utf-8")
    assert judge(kind, target, must_refuse=True) is False


def test_the_oracle_can_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that accepts anything is caught, and so is one that answers with a traceback."""
    from tests.robustness import oracle

    sound = CORPUS / "instance" / "two-modes.json"
    lax = oracle.LOADERS["instance"](sound)
    target = tmp_path / "instance.json"
    target.write_text(sound.read_text("utf-8").replace('"ranks": 1', '"ranks": -1'))
    monkeypatch.setitem(oracle.LOADERS, "instance", lambda path: lax)
    with pytest.raises(Wrong, match="schema"):
        judge("instance", target)
    monkeypatch.setitem(oracle.LOADERS, "instance", lambda path: {}["absent"])
    with pytest.raises(KeyError):
        judge("instance", target)


__all__ = ["cli"]

#: The beginning of a name in bad-files, and the commands that read such a file.
READ_BY: dict[str, tuple[str, ...]] = {
    "outcome": ("verify FILE --instance FORGED/B.json",),
    "plan": ("verify FILE", "export FILE --to torchrec"),
    "rep": ("verify FILE", "report FILE -o page.html", "report FILE --json"),
    "torchrec": ("import-plan FILE kuairand-27k --from torchrec",),
    "tzrec": ("import-plan FILE kuairand-27k --from tzrec",),
}


def test_damaged_corpus(cli: Cli, shared_data: Path) -> None:
    """Every file of ../shared/data/bad-files is refused in one sentence."""
    tried = 0
    for path in sorted((shared_data / "bad-files").iterdir()):
        for command in READ_BY.get(path.name.split("_")[0], ()):
            words = command.replace("FORGED", str(shared_data / "forged")).split()
            done = cli(*(str(path) if word == "FILE" else word for word in words))
            assert done.code == 2 and done.out == "", (path.name, command, done)
            assert done.err.count("\n") == 1 and "Traceback" not in done.err
            tried += 1
    assert tried > 20


def test_lies(cli: Cli, shared_data: Path) -> None:
    """No file of ../shared/data/forged is verified, and no edited plan is exported."""
    forged = shared_data / "forged"
    for path in sorted(forged.glob("*.json")):
        if path.name in ("B.json", "forged_certified_optimal.json"):
            continue
        alone = not path.name.startswith("o")
        done = cli("verify", path, *([] if alone else ["--instance", forged / "B.json"]))
        assert done.code in (1, 2), (path.name, done)
        assert "Traceback" not in done.err and "\x1b" not in done.out + done.err
        if alone and done.code == 2:
            for command in (["export", path, "--to", "torchrec"], ["report", path, "--json"]):
                assert cli(*command).code == 2, (path.name, command)
