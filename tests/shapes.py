"""The checker of types and shapes in signatures: a whole number may stand for a float, as in Python's typing."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
