"""Answers about a plan: why it is so, what memory buys, what it takes to change it.

One file per question. Every answer is a frozen value that terminal, JSON and HTML share. Every
figure in it comes from a solved Instance, or is a bound with its origin.
"""
