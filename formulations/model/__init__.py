"""The one linear model of the placement problem, over cells of ranks; every row written once."""
