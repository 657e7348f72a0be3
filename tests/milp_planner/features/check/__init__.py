"""Tests of ``check``, which reports every problem at once."""
