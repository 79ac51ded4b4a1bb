"""The one file that a trial leaves: what was checked, with which outcome, for people and for programs."""

import datetime
import json
import platform
import re

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"

# The number of an account is nobody's business but its owner's.
ACCOUNT = re.compile(r"(?<![0-9A-Za-z])[0-9]{12}(?![0-9A-Za-z])")
MASKED = "ACCOUNT"


class Outcome:
    """What came of one check."""

    def __init__(self, name, outcome, secs, reason=None):
        self.name, self.outcome, self.secs, self.reason = name, outcome, secs, reason

    def line(self):
        """What a terminal shows of it."""
        return f"{self.outcome:8}{self.secs:6.1f} s  {self.name}" + (f" ({self.reason})" if self.reason else "")

    def as_json(self):
        told = {"check": self.name, "outcome": self.outcome, "seconds": round(self.secs, 1)}
        return {**told, "reason": self.reason} if self.reason else told


class Report:
    """Outcomes and facts, as they come."""

    def __init__(self, name):
        self.name, self.outcomes, self.facts = name, [], {}
        self.began = datetime.datetime.now(datetime.timezone.utc)
        self.secrets = []

    def add(self, outcome):
        self.outcomes.append(outcome)

    def has_failed(self):
        return any(one.outcome == FAILED for one in self.outcomes)

    def count(self, outcome):
        return sum(one.outcome == outcome for one in self.outcomes)

    def as_json(self):
        return {
            "trial": self.name,
            "began": self.began.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "python": platform.python_version(),
            **self.facts,
            "checks": [one.as_json() for one in self.outcomes],
        }

    def text(self):
        """The file: a table, and below it the same as JSON. It has no account, no key and no secret."""
        told = self.as_json()
        lines = [
            f"# A trial of posthaste: {self.name}", "",
            f"{self.count(PASSED)} passed, {self.count(FAILED)} failed, {self.count(SKIPPED)} skipped", "",
            "| check | outcome | seconds | |", "|---|---|---|---|",
        ]
        for one in self.outcomes:
            reason = " ".join((one.reason or "").split()).replace("|", "\\|")
            lines.append(f"| {one.name} | {one.outcome} | {one.secs:.1f} | {reason} |")
        text = "\n".join([*lines, "", "```json", json.dumps(told, indent=2), "```", ""])
        for secret in self.secrets:
            text = text.replace(secret, "SECRET")
        return ACCOUNT.sub(MASKED, text)
