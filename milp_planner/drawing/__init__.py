"""Drawing: numbers as text, tables, bars, charts and the page; independent of plans."""
