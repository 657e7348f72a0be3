"""Questions about capacity: the same instance with more or less of something.

The something may be memory, machines, or what may move. :mod:`~formulations.capacity.budget` shares
one time limit between all solves of a question, :mod:`~formulations.capacity.curve` shares plans
and bounds between its points, :mod:`~formulations.capacity.proofs` certificates.
"""
