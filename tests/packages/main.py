"""Runs the tests of this folder on the files of a release, which lie in the folder that POSTHASTE_RELEASE names. Without
one they are put together from the programs of the tests: the one that POSTHASTE_BIN names, and those of Lambda beside
it. Run by tests/suite packages, as root."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import release

ROOT = pathlib.Path(__file__).resolve().parents[2]


def put_together(folder):
    program = pathlib.Path(os.environ["POSTHASTE_BIN"])
    subprocess.run(
        [ROOT / "packaging/dist", "--machine", release.MACHINE, "--out", folder,
         "--program", f"{release.MACHINE}={program}", "--functions", f"{release.MACHINE}={program.parent}"],
        check=True,
    )
    return folder


def main():
    with tempfile.TemporaryDirectory(prefix="posthaste-packages-") as folder:
        release.FOLDER = pathlib.Path(os.environ.get("POSTHASTE_RELEASE") or put_together(folder))
        loader = unittest.TestLoader()
        loader.testNamePatterns = [f"*{pattern}*" for pattern in sys.argv[1:]] or None
        suite = loader.discover(str(pathlib.Path(__file__).parent), pattern="test_*.py")
        result = unittest.TextTestRunner(verbosity=2).run(suite)
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    return 1 if failed or result.testsRun == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
