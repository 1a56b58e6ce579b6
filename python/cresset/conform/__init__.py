"""How well a device does: score card, operators that a model needs, and a shadow run that stops at the first wrong operator.

The command is `cresset conform` (and `cresset ops --needed-by`), from Python `python -m cresset.conform`.

| module | what is in it |
|---|---|
| `checks` | the checks of one operator in one dtype, against the CPU |
| `variants` | other calls of an operator: sizes, layouts, values, arguments |
| `randomness` | random operators: distributions, seeds, generators |
| `streams` | operators behind late work on a stream of their own |
| `card`, `processes` | runs all checks and adds them up, in one process or several |
| `text`, `html` | the card to read |
| `needed` | which operators a model calls, and how a device runs each |
| `shadow` | every operator on the device and on the CPU, side by side |
| `reproduce` | a script that repeats one call |
"""

from .card import Card, conform
from .needed import Needed, needed_by
from .shadow import Shadow, WrongOperator

__all__ = ["Card", "Needed", "Shadow", "WrongOperator", "conform", "needed_by"]
