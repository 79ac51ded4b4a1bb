"""What must hold for the template: rules, each of which looks at a stack and yields what is wrong with it.

`breaks.py` has ways to break each of them."""

RULES = {}


def rule(check):
    """Takes a rule in under its own name, as a reader would say it."""
    RULES[check.__name__.replace("_", "-")] = check
    return check


def broken(stack):
    """All that is wrong, as pairs of a rule's name and a sentence."""
    return [(name, problem) for name, check in RULES.items() for problem in check(stack)]


# Importing them is what fills RULES.
from rules import (  # noqa: E402, F401
    adoption, alarms, buckets, front_ends, functions, program, queues, roles, settings,
)
