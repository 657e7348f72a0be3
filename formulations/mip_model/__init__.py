"""The parts of the linear model that PuLP hands to HiGHS or CBC.

Written apart from :mod:`formulations.model`: one cross-checks the other.
"""
