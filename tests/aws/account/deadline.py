"""How long a trial may take, and waiting for what happens by itself: asked again and again, never a fixed sleep."""

import time

# What the trial promises.
ALL_SECS_MAX = 45 * 60

# Kept for the removal: two stacks are deleted, one beside the other, then queues, buckets and keys. AWS takes about
# four minutes for a stack.
REMOVAL_SECS = 10 * 60


class TimeIsUp(Exception):
    """The time that is left is for the removal alone."""


class Late(AssertionError):
    """What was waited for did not happen in time."""


class Deadline:
    """The trial's clock. `step_secs` lie between two looks: each costs a request. What is waited for may take
    `patience` times as long as on AWS."""

    def __init__(self, step_secs, all_secs=ALL_SECS_MAX, clock=time.monotonic, sleep=time.sleep, patience=1):
        self.step_secs, self.clock, self.sleep, self.patience = step_secs, clock, sleep, patience
        self.began = clock()
        self.ends = self.began + all_secs

    def elapsed(self):
        """Seconds since the trial began."""
        return self.clock() - self.began

    def left(self):
        """Seconds that are left for checks."""
        return self.ends - REMOVAL_SECS - self.clock()

    def until(self, answer, what, secs):
        """Asks until there is something to answer. After `secs` that is a failure, named after what was waited for."""
        return self._until(answer, what, secs, self.ends - REMOVAL_SECS)

    def until_removed(self, answer, what, secs):
        """The same, for the removal, which goes on when the time is up: what is left costs money."""
        return self._until(answer, what, secs, float("inf"))

    def _until(self, answer, what, secs, ends):
        late = self.clock() + secs * self.patience
        while True:
            answered = answer()
            if answered:
                return answered
            if self.clock() >= ends:
                raise TimeIsUp(f"{what}: the time of the trial was up")
            if self.clock() >= late:
                raise Late(f"{what}: not within {secs} s")
            self.sleep(self.step_secs)
