"""The planner as a service: jobs over HTTP, each solved in a process of its own, and one page."""
