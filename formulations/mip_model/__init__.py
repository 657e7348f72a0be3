"""The parts of the linear model that PuLP hands to HiGHS or CBC.

Written apart from :mod:`formulations.cpsat_model`: one cross-checks the other.
"""
