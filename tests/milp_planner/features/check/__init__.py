"""Every problem at once."""
