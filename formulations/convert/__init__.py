"""Read any file that holds a problem: our own format, or the literature's MMKP and GAP."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

from formulations.convert.literature import GAP, MMKP, gap_to_instance, has_fields, mmkp_to_instance
from formulations.errors import InstanceError
from formulations.instance import Instance, strict_json
from formulations.instance.file import FORMAT, instance_from_dict

_ALLOWED = f"allowed: {FORMAT!r}, or the MMKP and GAP layouts of docs/dp-vs-exact.md"


def read_any(path: str | Path) -> Instance:
    """Read an instance file of any known kind.

    Parameters
    ----------
    path : path
        A file (JSON, gzipped or not). Where a file holds several instances, ``FILE#NAME`` picks
        one: ``gap.json#a05100``.

    Raises
    ------
    InstanceError
        One sentence: the file, the field, what was found and what is allowed.
    """
    file, name = _split(path)
    document = _parse(file)
    if isinstance(document, dict) and "format" in document:
        if name is not None:
            raise InstanceError(f"{file}: holds one instance, so '#{name}' picks nothing")
        return instance_from_dict(document, str(file))
    found = _instances(document, file)
    if name is None and len(found) > 1:
        first = ", ".join(list(found)[:3])
        raise InstanceError(
            f"{file}: holds {len(found)} instances; pick one as {file.name}#NAME ({first}, …)"
        )
    key = next(iter(found)) if name is None else name
    if key not in found:
        near = difflib.get_close_matches(key, found, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(found)}"
        raise InstanceError(f"{file}: holds no instance {key!r}; {hint}")
    if has_fields(found[key], GAP):
        return gap_to_instance(found[key], f"{file}#{key}", key)
    return mmkp_to_instance(found[key], f"{file}#{key}")


def names_in(path: str | Path) -> list[str]:
    """Names of the instances in a literature file; empty for our own format.

    Raises
    ------
    InstanceError
        For a file of no known kind.
    """
    document = _parse(Path(path))
    if isinstance(document, dict) and "format" in document:
        return []
    return list(_instances(document, Path(path)))


def _split(path: str | Path) -> tuple[Path, str | None]:
    if Path(path).exists() or "#" not in str(path):
        return Path(path), None
    file, name = str(path).split("#", 1)
    return Path(file), name


def _parse(file: Path) -> Any:
    # Fractions are allowed here and checked field by field: profits may have decimals.
    return strict_json.parse(strict_json.read_bytes(file), str(file))


def _instances(document: Any, file: Path) -> dict[str, dict[str, Any]]:
    """Every literature instance of a document by name."""
    if has_fields(document, MMKP) or has_fields(document, GAP):
        return {str(document.get("name", file.stem)): document}
    if isinstance(document, list) and document and all(has_fields(d, MMKP) for d in document):
        return {str(item.get("name", i)): item for i, item in enumerate(document)}
    several = document.values() if isinstance(document, dict) else ()
    if several and all(has_fields(d, GAP) for d in several):
        return dict(document)
    raise InstanceError(f"{file}: not a known kind of instance file; {_ALLOWED}")
