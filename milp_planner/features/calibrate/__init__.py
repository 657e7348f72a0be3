"""Hardware profiles measured on the machine at hand, or fitted to published sweeps.

torch is needed to measure and loads then; fitting a sweep needs none.
"""
