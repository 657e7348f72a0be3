"""Shipped models and clusters, a generator of models, and batch runs of suites of scenarios."""
