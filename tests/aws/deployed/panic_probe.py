"""The program of deliver as `sam build` makes it (tests/aws/sam shows the call), but for a feature with which
deliver panics at requests to endpoints that ask for it."""

import os
import pathlib
import subprocess

from stack import ROOT

PROGRAM = "posthaste-delivery"


def built():
    """Builds it, which takes minutes the first time, and answers where it is."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()
    tools = pathlib.Path(os.environ["POSTHASTE_TOOLS"], "sam", "bin")
    folder = target / "panic-probe"
    subprocess.run(
        [
            "cargo",
            "lambda",
            "build",
            "--release",
            "--bin",
            PROGRAM,
            "--features",
            "panic-probe",
            "--lambda-dir",
            folder,
        ],
        cwd=ROOT / "infra" / "lambda",
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"},
        check=True,
    )
    return folder / PROGRAM / "bootstrap"
