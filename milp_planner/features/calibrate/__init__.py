"""Hardware profiles, measured on this machine or fitted to published sweeps.

Measuring needs torch, which is imported only then; fitting a sweep does not.
"""
