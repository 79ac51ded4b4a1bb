"""Half a minute of torture of the functions, on a stack of its own."""

import random
import sys
import unittest

from torture import torture

SECS = 30


class OfFunctions(unittest.TestCase):
    def test_ledger_of_half_a_minute_of_torture_balances(self):
        seed = random.SystemRandom().randrange(1 << 32)
        run = torture(SECS, seed)
        sys.stderr.write(f"seed {seed}\n{run.report()}\n")
        self.assertEqual(run.faults, [])
