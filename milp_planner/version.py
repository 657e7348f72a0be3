"""The version, stated once: the package, its wheel and the files it writes say this one."""

__version__ = "0.1.0"
