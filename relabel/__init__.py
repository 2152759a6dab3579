"""Rubric -> judge -> adjudicator -> clean labels, with a durable journal (extra ``[relabel]``).

Importing this package loads nothing heavy; the modules are imported by name where they are used.
"""
