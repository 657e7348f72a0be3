"""Named accessors for the sections of a state, ``a[a[NAME] + i]``."""

from __future__ import annotations

from formulations.search.anneal_data import (
    ASSIGNMENT_BLOCK,
    ASSIGNMENT_DOMAIN,
    ASSIGNMENT_ENTRY,
    ASSIGNMENT_KIND,
    ASSIGNMENT_START,
    DISTINCT,
    GROUP,
    HOME_OPTION,
    LEVEL,
    MACHINE_OF,
    OLD_OPTION,
    OPTION,
    PINNED,
    TOGETHER,
)
from formulations.search.kernels.compiled import kernel


@kernel
def block_of(a, assignment):
    """The block of an assignment."""
    return a[a[ASSIGNMENT_BLOCK] + assignment]


@kernel
def kind_of(a, assignment):
    """The kind of an assignment: 0 a shard on a rank, 1 and 2 shards on all ranks of a machine."""
    return a[a[ASSIGNMENT_KIND] + assignment]


@kernel
def entry_of(a, assignment):
    """The shard entry of an assignment."""
    return a[a[ASSIGNMENT_ENTRY] + assignment]


@kernel
def domain_number(a, assignment):
    """The domain that an assignment chooses its place from."""
    return a[a[ASSIGNMENT_DOMAIN] + assignment]


@kernel
def first_assignment(a, option):
    """The first assignment of an option; its assignments end where the next option's begin."""
    return a[a[ASSIGNMENT_START] + option]


@kernel
def group_of(a, option):
    """The fusion group of an option, or -1."""
    return a[a[GROUP] + option]


@kernel
def level_of(a, option):
    """The level of an option in its group."""
    return a[a[LEVEL] + option]


@kernel
def option_of(a, table):
    """The option that a table has now."""
    return a[a[OPTION] + table]


@kernel
def old_option_of(a, table):
    """The option that a table had before it was lifted."""
    return a[a[OLD_OPTION] + table]


@kernel
def home_of(a, table):
    """The option of a table in production; -1: one that is not among the options, -2: none."""
    return a[a[HOME_OPTION] + table]


@kernel
def machine_of(a, rank):
    """The machine of a rank."""
    return a[a[MACHINE_OF] + rank]


@kernel
def must_part(a, block):
    """Whether shards of a block must lie on different ranks."""
    return a[a[DISTINCT] + block]


@kernel
def stays_together(a, block):
    """Whether shards of a block share one machine."""
    return a[a[TOGETHER] + block]


@kernel
def is_pinned(a, block):
    """Whether a block's places are given."""
    return a[a[PINNED] + block]
