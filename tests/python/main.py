"""Runs the tests of this folder against one server, which is the program that POSTHASTE_BIN names. Run by
tests/run."""

import os
import pathlib
import sys
import unittest

import serving


def main():
    with serving.Server(os.environ["POSTHASTE_BIN"]) as serving.SERVER:
        folder = str(pathlib.Path(__file__).parent)
        suite = unittest.defaultTestLoader.discover(folder, pattern="test_*.py")
        result = unittest.TextTestRunner(verbosity=2).run(suite)
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    return 1 if failed or result.testsRun == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
