"""The version, stated once: the package, its wheel and the files it writes say this one.

Raise it when the same model, cluster and profile get other bytes or prices: ``verify`` refutes a
plan of its own version whose inputs it prices otherwise, and does not judge the prices of others.
"""

__version__ = "0.3.0"
