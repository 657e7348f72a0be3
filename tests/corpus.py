"""Bad inputs beside the tests that they are for: ``mistakes.yaml`` of a folder."""

from pathlib import Path
from typing import Any

import yaml


def mistakes(file: str, name: str) -> list[Any]:
    """The rows of a name in the ``mistakes.yaml`` beside a test file."""
    path = Path(file).with_name("mistakes.yaml")
    rows: list[Any] = yaml.safe_load(path.read_text(encoding="utf-8"))[name]
    return rows
