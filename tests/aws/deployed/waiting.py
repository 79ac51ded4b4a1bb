"""Waiting for what happens by itself: asked again and again, with a deadline, never a fixed sleep."""

import time

# Far longer than anything takes, so that a busy machine fails no test.
PATIENCE_SECS = 90


def until(answer, what, patience_secs=PATIENCE_SECS, found=lambda: "nothing"):
    """Asks until there is something to answer. A failure says what was `found` instead."""
    deadline = time.monotonic() + patience_secs
    while time.monotonic() < deadline:
        answered = answer()
        if answered:
            return answered
        time.sleep(0.1)
    raise AssertionError(f"{what}: not within {patience_secs} s, but {found()}")
