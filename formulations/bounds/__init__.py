"""Lower bounds, each a function of the Instance; docs/bounds.md argues why each is valid."""
