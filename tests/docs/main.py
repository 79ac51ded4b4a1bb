"""Runs the tests of the documents. Run by tests/run with the packages of tests/requirements/clients.txt, the
program as POSTHASTE_BIN and the packages of tests/node in POSTHASTE_NODE. Arguments name modules."""

import pathlib
import sys
import unittest


def main():
    folder = str(pathlib.Path(__file__).parent)
    sys.path.insert(0, folder)
    loader = unittest.defaultTestLoader
    modules = sys.argv[1:]
    suite = loader.loadTestsFromNames(modules) if modules else loader.discover(folder, pattern="test_*.py")
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main())
