"""Studies of published incidents and measurements with the planner's own prices."""
