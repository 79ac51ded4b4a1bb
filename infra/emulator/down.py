"""The program behind `down`."""

import argparse
import shutil
import sys

import emulator
import folder


def main():
    parser = argparse.ArgumentParser(
        prog="infra/emulator/down",
        description="Stops the emulator that `up` started, and the functions on it.",
    )
    folder.add_option(parser)
    options = parser.parse_args()
    stopped = emulator.Emulator(options.folder.resolve()).stop()
    folder.forget(options.folder)
    shutil.rmtree(options.folder / "tmp", ignore_errors=True)
    print("stopped" if stopped else f"nothing is running in {options.folder}", file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
    except (emulator.Trouble, OSError) as trouble:
        sys.exit(f"down: {trouble}")
