"""What a plan means, for people: info values computed once, and drawings of them.

Every figure shown anywhere (terminal, JSON, HTML) comes from a frozen info value of this package;
tests assert on the values, drawings only format them.
"""
