"""The machine below: Ctrl-C, the garbage collector, files."""
