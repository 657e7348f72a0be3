"""What one can ask for, one folder each: its call, its facts, its drawings."""
