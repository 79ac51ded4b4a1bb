"""Waiting for what happens by itself: asked again and again, with a deadline."""

import time

# Far longer than anything takes: wake runs once a minute.
PATIENCE_SECS = 300


def until(answer, what):
    deadline = time.monotonic() + PATIENCE_SECS
    while time.monotonic() < deadline:
        answered = answer()
        if answered:
            return answered
        time.sleep(0.2)
    raise AssertionError(f"{what}: not within {PATIENCE_SECS} s")
