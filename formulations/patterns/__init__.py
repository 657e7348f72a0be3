"""Boxes of peaks, and patterns: what one rank can hold within them. They give bounds, and options
to place."""
