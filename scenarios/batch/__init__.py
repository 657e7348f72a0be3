"""Batch runs: suites of (model × cluster × objective × formulation × seed), run and resumed.

``load_suite`` reads a suite, ``run_batch`` solves the scenarios that a folder has no results of,
``read_batch`` reads a folder back, ``connect`` opens the results as a SQLite table.
"""

from scenarios.batch.query import connect
from scenarios.batch.runner import Batch, run_batch
from scenarios.batch.stored import read_batch
from scenarios.batch.suite import Suite, find_suite, load_suite, suites

__all__ = [
    "Batch",
    "Suite",
    "connect",
    "find_suite",
    "load_suite",
    "read_batch",
    "run_batch",
    "suites",
]
