"""Answers about a plan: why it is so, what memory buys, what it takes to change it.

One question a file. Every answer is a frozen value that terminal, JSON and HTML share, and every
figure in it is a solved Instance or a bound that says where it comes from.
"""
