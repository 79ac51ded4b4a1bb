"""Waiting for what a release does by itself, which takes minutes."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "aws" / "deployed"))

import waiting  # noqa: E402

# Far longer than anything takes: wake runs once a minute.
PATIENCE_SECS = 300


def until(answer, what):
    return waiting.until(answer, what, PATIENCE_SECS)
