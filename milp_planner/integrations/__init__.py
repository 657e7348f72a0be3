"""From users' models in other formats to an Instance, and from a plan to trainers' formats.

Nothing here is imported by the engine; each integration loads its library on first use and says in
one sentence what to install if it is absent.
"""
