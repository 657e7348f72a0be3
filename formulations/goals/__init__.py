"""After the objective: what else a plan should be good at, one goal after another."""
