"""Hardware profiles measured on the machine at hand, or fitted to published sweeps.

Measuring needs torch, which is imported only then; fitting a sweep does not.
"""
