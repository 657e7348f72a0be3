"""Batch runs: suites of models, clusters and formulations, run, resumed and compared."""
