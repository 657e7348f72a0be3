"""The parts of the exact CP-SAT model, one constraint family a file."""
