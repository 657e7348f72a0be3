"""What `pip install .` installs: the four packages with their data, nothing else."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("milp_planner", "formulations", "cuda_routing", "scenarios")
#: Suffixes of a package's data (byte code and editors' files are neither data nor source).
DATA = {".yaml", ".yml", ".csv", ".json", ".cu", ".cuh", ".h", ".cpp", ".j2", ".html", ".css",
        ".js", ".md", ".typed"}  # fmt: skip


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """A wheel built from a copy of the sources, as pip builds it."""
    pytest.importorskip("setuptools", minversion="77")
    copy = tmp_path_factory.mktemp("copy")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "tests").mkdir()
    (copy / "tests" / "__init__.py").write_text("")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    build = "import sys, setuptools.build_meta as b; print(b.build_wheel(sys.argv[1]))"
    subprocess.run(
        [sys.executable, "-c", build, str(copy)], cwd=copy, check=True, capture_output=True
    )
    return zipfile.ZipFile(next(copy.glob("*.whl")))


def test_only_the_four_packages(wheel: zipfile.ZipFile) -> None:
    """Tests, benchmarks and docs stay out of the user's site-packages."""
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(PACKAGES)


def test_every_source_and_data_file_is_in(wheel: zipfile.ZipFile) -> None:
    """A file that only the checkout has would make the installed package differ."""
    wanted = {
        path.relative_to(ROOT).as_posix()
        for name in PACKAGES
        for path in (ROOT / name).rglob("*")
        if path.suffix in DATA | {".py"} and "__pycache__" not in path.parts
    }
    assert wanted <= set(wheel.namelist()), sorted(wanted - set(wheel.namelist()))[:5]


def test_no_data_file_has_an_unknown_suffix() -> None:
    """A new kind of data file must join the list here and in pyproject.toml."""
    found = {
        path.suffix or path.name
        for name in PACKAGES
        for path in (ROOT / name).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert found <= DATA | {".py"}, found


def test_torch_is_never_a_core_dependency(wheel: zipfile.ZipFile) -> None:
    """A plain install does not install torch."""
    metadata = next(n for n in wheel.namelist() if n.endswith("/METADATA"))
    lines = wheel.read(metadata).decode().splitlines()
    core = [x for x in lines if x.startswith("Requires-Dist:") and "extra ==" not in x]
    assert core and not any(word in x for x in core for word in ("torch", "ray"))
