"""The command line: one file per command, registered in :mod:`milp_planner.cli.main`.

Nothing heavy is imported before a command runs, so that ``--help`` stays instant.
"""
