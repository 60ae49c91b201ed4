"""Whole scripts.

In: a script. Out: what it does in plain Python, sooner.
"""
