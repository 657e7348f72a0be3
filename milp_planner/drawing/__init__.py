"""Drawing: numbers as text, tables, bars, charts and the page, knowing nothing of plans."""
