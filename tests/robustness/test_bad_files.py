"""Files that once ended in a traceback, or were certified although they are false."""

from __future__ import annotations

from pathlib import Path

from tests.milp_planner.cli.conftest import Cli, cli

__all__ = ["cli"]

#: The beginning of a name in bad-files, and the commands that read such a file.
READ_BY: dict[str, tuple[str, ...]] = {
    "outcome": ("verify FILE --instance FORGED/B.json",),
    "plan": ("verify FILE", "export FILE --to torchrec"),
    "rep": ("verify FILE", "report FILE -o page.html", "report FILE --json"),
    "npy": ("route FILE",),
    "torchrec": ("import-plan FILE kuairand-27k --from torchrec",),
    "tzrec": ("import-plan FILE kuairand-27k --from tzrec",),
}


def test_damaged_files(cli: Cli, shared_data: Path) -> None:
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
