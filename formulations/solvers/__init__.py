"""A model of :mod:`formulations.model` handed to CP-SAT."""
