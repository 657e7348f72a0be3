"""The report: one self-contained HTML file, drawn from the same info values as the terminal."""
