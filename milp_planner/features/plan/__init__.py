"""Plan: the call, and every figure of a plan."""
