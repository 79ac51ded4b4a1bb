"""What functions and emulator have logged once all tests have run: no failure but those that a test caused. A missing
permission shows here even where a function has a way around it."""

import json

from case import Case

FUNCTIONS = ("publish", "deliver", "wake", "deadletter", "monitor", "manage")

# Errors that tests have caused: the garbage in the delivery queue.
MEANT = ("not a message of posthaste",)


class Afterwards(Case):
    def test_the_functions_failed_at_nothing_but_what_tests_did(self):
        self.assertEqual([line for function in FUNCTIONS for line in self.failures(function)], [])

    def test_the_emulator_failed_at_nothing(self):
        log = self.stack.emulator_log()
        self.assertIn("Running on http://127.0.0.1", log)
        self.assertEqual([line for line in log.splitlines() if " ERROR " in line], [])

    def failures(self, function):
        lines = (json.loads(line) for line in self.stack.logs(function) if line.startswith("{"))
        grave = (line for line in lines if line.get("level") in ("WARN", "ERROR"))
        return [line for line in grave if not line.get("error", MEANT[0]).startswith(MEANT)]
