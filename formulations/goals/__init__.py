"""Goals beyond the objective: what else a plan should be good at, in order of priority."""
