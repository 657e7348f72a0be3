"""From other people's models to an Instance, and from a plan to what their trainers read.

Nothing here is imported by the engine; each integration loads its library on first use and says
in one sentence what to install when it is absent.
"""
