"""From inputs to an Instance: the first half of every call."""

from __future__ import annotations
