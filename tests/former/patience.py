"""Waiting for what a release does by itself, which takes minutes."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "aws" / "deployed"))

import waiting  # noqa: E402

# Far longer than anything takes: wake runs once a minute.
PATIENCE_SECS = 300

# Longer than SQS delays a message at the most, fifteen minutes: what was tried some times waits as long in the queue,
# where no operator forces it.
DELAYED_SECS = 1200


def until(answer, what, seconds=PATIENCE_SECS):
    return waiting.until(answer, what, seconds)
