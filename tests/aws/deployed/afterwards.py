"""What functions and emulator have logged once all tests have run: no failure but those that a test caused. A
missing permission shows here even where a function has a way around it."""

import json

import case
from case import Case

FUNCTIONS = ("publish", "deliver", "wake", "deadletter", "monitor", "manage", "record")


class Afterwards(Case):
    def test_the_functions_failed_at_nothing_but_what_tests_did(self):
        self.assertEqual([line for function in FUNCTIONS for line in self.failures(function)], [])

    def test_the_emulator_failed_at_nothing_but_what_tests_did(self):
        log = self.stack.emulator_log()
        self.assertIn("Running on http://127.0.0.1", log)
        grave = (line for line in log.splitlines() if " ERROR " in line)
        self.assertEqual([line for line in grave if not is_caused(line)], [])

    def failures(self, function):
        """Warnings and errors that say why, and that no test has announced."""
        lines = (line for line in self.stack.logs(function) if line.startswith("{"))
        grave = (
            line for line in lines if json.loads(line).get("level") in ("WARN", "ERROR") and '"error"' in line
        )
        return [line for line in grave if not is_caused(line)]


def is_caused(line):
    """Whether a test has announced it."""
    return any(text in line for text in case.CAUSED)
