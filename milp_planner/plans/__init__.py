"""A plan: inputs compiled to an Instance, its solution decoded, and the file that holds both."""
