"""The checks of a trial, in their order. Each is a small function: what it asserts is what it is called for."""

from report import FAILED, PASSED, SKIPPED, Outcome
from deadline import TimeIsUp
from ledger import TooDear

CHECKS = []


class Check:
    """A check: its sentence, what it may cost and take, whether others need it, and why an emulator cannot show it."""

    def __init__(self, run, sentence, dollars, secs, is_needed, not_shown):
        self.run, self.sentence, self.dollars, self.secs = run, sentence, dollars, secs
        self.is_needed, self.not_shown = is_needed, not_shown

    def outcome(self, trial, needed):
        """Runs it, unless it cannot or may not be run. `needed` is what failed that it stands on, or None."""
        began = trial.deadline.elapsed()

        def ended(outcome, reason=None):
            return Outcome(self.sentence, outcome, trial.deadline.elapsed() - began, reason)

        if needed:
            return ended(SKIPPED, f"needs that {needed}")
        if trial.cloud.is_emulator and self.not_shown:
            return ended(SKIPPED, f"not shown by an emulator: {self.not_shown}")
        if trial.deadline.left() < self.secs:
            return ended(SKIPPED, f"it may take {self.secs} s, and {trial.deadline.left():.0f} s are left")
        try:
            trial.ledger.afford(self.sentence, self.dollars, self.secs)
            self.run(trial)
        except (TooDear, TimeIsUp) as error:
            return ended(SKIPPED, str(error))
        # Whatever goes wrong is what the trial is for; the next check may show more.
        except Exception as error:  # noqa: BLE001
            return ended(FAILED, f"{type(error).__name__}: {error}")
        return ended(PASSED)


def check(sentence, *, dollars=0.002, secs=120, is_needed=False, not_shown=None):
    """Takes a check in."""
    def take(run):
        CHECKS.append(Check(run, sentence, dollars, secs, is_needed, not_shown))
        return run

    return take


def chosen(texts, checks):
    """The checks whose sentence has one of these texts, and what these need. Without a text, all."""
    wanted = [any(text in one.sentence for text in texts) for one in checks]
    last = max((index for index, is_wanted in enumerate(wanted) if is_wanted), default=-1)
    return [one for index, one in enumerate(checks)
            if not texts or wanted[index] or (one.is_needed and index < last)]


def run_all(trial, tell, checks):
    """Runs checks. What stands on one that others need, and that did not pass, is skipped."""
    needed = None
    for one in checks:
        outcome = one.outcome(trial, needed)
        trial.report.add(outcome)
        tell(outcome.line())
        if one.is_needed and outcome.outcome != PASSED:
            needed = one.sentence


def equal(found, expected, what):
    """An assertion that says both."""
    if found != expected:
        raise AssertionError(f"{what}: {found!r}, expected {expected!r}")


def holds(condition, what):
    if not condition:
        raise AssertionError(what)
