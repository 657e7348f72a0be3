"""A plan: compiling inputs to an Instance, decoding its solution, and the file of both."""
