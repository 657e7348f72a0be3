"""Adapters: a model of :mod:`formulations.model` handed to CP-SAT, and to HiGHS."""
