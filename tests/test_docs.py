"""Documents agree with the code: snippets run, links lead somewhere, tables are generated."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from docs.generate.cli import parameters
from milp_planner.cli import main
from tests.milp_planner.cli.conftest import CLUSTER, MODEL

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
EVERY = sorted([*PAGES, *(ROOT / "docs").glob("*/*.md")])
_SNIPPET = re.compile(r"```python\n(.*?)```", re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", ["README.md", "docs/guide.md"])
def test_python_snippets_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python that a reader would copy works unchanged, on a small model."""
    (tmp_path / "model.yaml").write_text(MODEL.replace("items", "item_id"))
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "today.csv").write_text(
        "table,mode,ratio,sharding_type,ranks\nusers,HBM_ONLY,,table_wise,0\n"
        "item_id,HBM_ONLY,,row_wise,all\nads,HBM_ONLY,,row_wise,all\n"
    )
    monkeypatch.chdir(tmp_path)
    snippets = [s for s in _SNIPPET.findall((ROOT / page).read_text()) if "torchrec" not in s]
    assert snippets
    for number, snippet in enumerate(snippets):
        (tmp_path / f"snippet_{number}.py").write_text(snippet)
        runpy.run_path(str(tmp_path / f"snippet_{number}.py"))


@pytest.mark.parametrize("page", EVERY, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of a page names a file of the project."""
    for target in _LINK.findall(page.read_text(encoding="utf-8")):
        if "://" not in target and not target.startswith("mailto:"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_readme_names_the_commands_make_runs() -> None:
    """README also has the commands of `make demo` and `make test` as raw lines."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for line in ("make demo", "make test", " pip install .\n", "-m pip install -e '.[test]'",
                 "-m pytest"):  # fmt: skip
        assert line in readme


_FIGURE = re.compile(r"\d+(?:[.,-]\d+)*")


def _shape(line: str) -> str:
    """A line with its spaces and frame reduced, and N for every figure or list of ranks. Which of
    its two fusion groups the only dynamicemb table joins is all the same, so that is left out."""
    words = [word for word in line.strip(" │").split() if word != "beside_caching"]
    return _FIGURE.sub("N", " ".join(words))


def test_the_first_commands_print_what_readme_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """README's first three commands run as they stand, in an empty folder, and print every line
    shown below each, up to figures and which of the equal ranks; the step time to the digit."""
    block = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)[0]
    first, *runs = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    assert first == "pip install .\n" and len(runs) == 3
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for text in runs:
        command, *shown = text.splitlines()
        program, *words = command.split()
        assert program == "milp-planner" and shown and main.run(words) == 0
        out = capsys.readouterr().out
        printed = [_shape(line) for line in out.splitlines()]
        for line in shown:
            assert any(found.startswith(_shape(line)) for found in printed), line
            if "step_time" in line:
                assert line.split()[2] in out


def test_readme_is_short() -> None:
    """README fits 120 lines."""
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 120


_OPENS = re.compile(r"# .+\n\n(?=[^\W_]|[\"*`])(?!```)(.+)")


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda p: p.relative_to(ROOT).as_posix()
)
def test_pages_open_with_words(page: Path) -> None:
    """Below its title a page says what it answers: no heading, table, list, picture or code."""
    assert _OPENS.match(page.read_text("utf-8")), f"{page.name} does not open with a sentence"


def test_the_index_is_the_way_through_the_site() -> None:
    """docs/index.md has every page of the site's navigation, in its order and sections."""
    _, nav = (ROOT / "mkdocs.yml").read_text("utf-8").split("nav:\n")
    sections = re.findall(r'^  - "?([^"\n]+?)"?:\n((?:      .+\n)+)', nav, re.MULTILINE)
    site = {name: re.findall(r"(\S+\.md)$", pages, re.M) for name, pages in sections}
    site["Start"].remove("index.md")
    index = (ROOT / "docs" / "index.md").read_text("utf-8").replace("tutorial.py", "tutorial.md")
    parts = re.split(r"^## (.+)\n", index, flags=re.MULTILINE)
    told = {
        name: re.findall(r"^\| \[[^]]+\]\(([^)]+)", text, re.MULTILINE)
        for name, text in zip(parts[1::2], parts[2::2], strict=True)
    }
    assert told == {**site, "What is inside": []}
    pages = {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")}
    assert {"index.md", *(p for each in site.values() for p in each)} == {"tutorial.md", *pages}


_CLAIM = re.compile(
    r"(?i)\b(?:provabl[ey]|guaranteed|always|exact(?:ly)?|truly)[ -](?:the )?(?:optim|best)"
    r"|\bthe exact optim|jointly and exactly|finds? the (?:optimum|optimal plan)\b"
)


def claims(text: str) -> list[str]:
    """Words that promise an optimum on every model, which docs/results.md does not bear out."""
    return [found[0] for found in _CLAIM.finditer(text)]


@pytest.mark.parametrize("claim", [
    "Provably optimal placement", "is always optimal", "an exact optimal plan",
    "It finds the optimum.", "chosen jointly and exactly", "guaranteed the best",
])  # fmt: skip
def test_claims_are_recognised(claim: str) -> None:
    """Each of these would be one; a certified or proved optimum is not."""
    assert claims(claim)
    assert not claims("CERTIFIED OPTIMAL; proves how near the best it is; 96 optima are proved")


@pytest.mark.parametrize("page", [
    *EVERY, *(ROOT / name for name in ("mkdocs.yml", "pyproject.toml", "milp_planner/__init__.py"))
], ids=lambda p: p.relative_to(ROOT).as_posix())  # fmt: skip
def test_no_page_claims_more_than_is_proved(page: Path) -> None:
    """Plans are optimal where a proof says so; no page promises that for all."""
    assert claims(page.read_text("utf-8")) == []


_COMMAND = re.compile(r"^\s*(?:\$ )?milp-planner ([a-z][a-z-]*)(.*)$", re.MULTILINE)


@pytest.mark.parametrize("page", EVERY, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_commands_shown_exist(page: Path) -> None:
    """Every command line in a code block names an existing command and options that it takes."""
    known = {command.name: command for command in main.COMMANDS}
    for block in re.findall(r"```(?:bash|sh|console)?\n(.*?)```", page.read_text("utf-8"), re.S):
        for name, rest in _COMMAND.findall(block.replace("\\\n", " ")):
            assert name in known, f"{page.name} shows `milp-planner {name}`"
            options = {word for p in parameters(known[name].load()) for word in p.names.split()}
            takes = {word.strip("`,") for word in options} | {"--help", "-h"}
            for word in re.findall(r"(?<=\s)--?[a-z][a-z-]*", rest.split("#")[0]):
                assert word in takes, f"{page.name}: `milp-planner {name}` takes no {word}"


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """`make site` works: links, anchors and every name in the Python reference resolve."""
    pytest.importorskip("mkdocstrings", reason="the docs extra is not installed")
    pytest.importorskip("material", reason="the docs extra is not installed")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "from_dict" in (tmp_path / "tutorial.html").read_text("utf-8")
    assert (tmp_path / "search" / "search_index.json").stat().st_size > 100_000


_SOURCE = re.compile(r"`((?:[\w-]+/)+[\w-]+\.py)`")
_FOREIGN = ("torchrec/", "tzrec/", "planner/", "distributed/", "distributed_embeddings/")


@pytest.mark.parametrize("page", EVERY, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_source_files_named_exist(page: Path) -> None:
    """Every Python file that a page names exists, by its full path or within a package."""
    for named in _SOURCE.findall(page.read_text("utf-8")):
        places = (ROOT / named, ROOT / "milp_planner" / named, ROOT / "formulations" / named)
        if not named.startswith(_FOREIGN):
            assert any(place.is_file() for place in places), f"{page.name} names {named}"
