"""Runs the tests against one stack, one sink and one `posthaste serve`. Started by `run`, which says what it
needs."""

import os
import pathlib
import signal
import sys
import unittest

import afterwards
import case
import sink
import stack

# The server that tests/python has for its clients.
sys.path.append(str(stack.ROOT / "tests" / "python"))

import serving  # noqa: E402


def main():
    # A SIGTERM must not leave an emulator behind. As an interrupt it ends the run, and every `with` is left
    # properly.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    server = serving.Server(os.environ["POSTHASTE_BIN"])
    with server as case.SERVE, sink.Sink() as case.SINK, stack.Stack() as case.STACK:
        loader = unittest.TestLoader()
        loader.testNamePatterns = [f"*{pattern}*" for pattern in sys.argv[1:]] or None
        suite = loader.discover(str(pathlib.Path(__file__).parent), "test_*.py")
        suite.addTests(loader.loadTestsFromModule(afterwards))
        result = unittest.TextTestRunner(verbosity=2).run(suite)
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main())
