"""The synthetic risk-driver set: passages whose truth follows from a written rubric, with noisy labels.

``text`` expands a small grammar, ``vocabulary`` reads the TOML files beside it (what happens in a passage,
and so what is true of it), ``world`` invents names and amounts, ``stories`` writes passages, ``labelling``
draws repeats, annotators and errors. Standard library only; the same seed gives the same bytes everywhere.
"""
