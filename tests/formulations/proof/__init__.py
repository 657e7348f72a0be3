"""Tests of formulations.proof."""
