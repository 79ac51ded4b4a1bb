"""The trial in an account (tests/aws/account), whole, on an emulator of its own: everything passes but what an
emulator does not show, and nothing is left, however the trial ends."""

import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import unittest

import boto3

from stack import EMULATOR, ROOT

sys.path += [str(ROOT / "infra" / "emulator"), str(ROOT / "tests" / "aws" / "account")]

import emulator  # noqa: E402
import programs  # noqa: E402
import removal  # noqa: E402

# The commands of the page, which a reader copies.
PAGE = ROOT / "docs" / "src" / "operating" / "trial.md"
BLOCKS = re.findall(
    r"<!-- run by: tests/aws/deployed/test_trial.py -->\n```sh\n(.*?)```", PAGE.read_text(), re.DOTALL
)

# A whole trial takes three minutes on an idle machine.
TRIAL_SECS_MAX = 1_500

# What an emulator does not show, by the beginning of a sentence.
NOT_SHOWN = [
    "SQS keeps a redrive policy", "each role has the permissions boundary", "Lambda has a grant of the key",
    "CloudWatch has the metrics",
]

# It reads the release's template, changes what cannot hold on the emulator, and takes rights away from a role.
ADAPT = """
import json, sys, template
made = template.adapted({}, sys.argv[1])
role, sids = sys.argv[2], sys.argv[3:]
for policy in made["Resources"][role]["Properties"]["Policies"]:
    statements = policy["PolicyDocument"]["Statement"]
    statements[:] = [one for one in statements if one.get("Sid") not in sids]
print(json.dumps(made, default=str))
"""


class Trials(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="posthaste-trial-")))
        done = subprocess.run([EMULATOR / "python"], check=True, stdout=subprocess.PIPE, text=True)
        cls.python = done.stdout.strip()
        cls.machine = emulator.Emulator(cls.folder / "emulator")
        cls.addClassCleanup(cls.machine.stop)
        cls.in_emulator("import emulator, sys; emulator.Emulator(sys.argv[1]).start(0)", cls.machine.folder)
        # As a release has them, and without their symbols: the program is quick to upload them then.
        for name in programs.functions.FUNCTIONS:
            built = pathlib.Path(os.environ["POSTHASTE_FUNCTIONS"], name)
            code = "import package, sys; package.pack(*sys.argv[1:])"
            cls.in_emulator(code, built, cls.folder / f"{name}-x86_64.zip")
        cls.template = cls.adapted()

    @classmethod
    def in_emulator(cls, code, *words, stdout=None):
        """Runs code in the environment of the emulator."""
        subprocess.run(
            [cls.python, "-B", "-c", code, *words], check=True, stdout=stdout,
            env={**os.environ, "PYTHONPATH": str(EMULATOR)},
        )

    @classmethod
    def adapted(cls, role="DeliverRole", *sids):
        """The template as the emulator takes it, where a role lacks some statements."""
        released, path = cls.folder / "released.yaml", cls.folder / f"without-{'-'.join(sids)}.json"
        released.write_bytes(programs.template())
        with path.open("wb") as adapted:
            cls.in_emulator(ADAPT, released, role, *sids, stdout=adapted)
        return path

    def start(self, *more, template=None):
        """Starts the program. The emulator runs programs of this machine, whatever they are called."""
        self.report = self.folder / f"{self.id()}.md"
        words = ["--yes", "--report", self.report, "--architecture", "x86_64", "--template", template or self.template]
        command = BLOCKS[0].replace("posthaste-X-lambda-arm64", str(self.folder))
        return self.program(command, *words, *more)

    def remove(self, name):
        return self.program(BLOCKS[1].replace("posthaste-trial-4f0c1e", name))

    def program(self, command, *more):
        """Starts a command of the page in the clone, with more options."""
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(self.folder), "AWS_ACCESS_KEY_ID": emulator.ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": emulator.SECRET_KEY, "AWS_DEFAULT_REGION": emulator.REGION,
            "POSTHASTE_TOOLS": str(pathlib.Path(os.environ["POSTHASTE_TOOLS"]).resolve()),
        }
        words = [*shlex.split(command), "--endpoint-url", self.machine.url, *more]
        return subprocess.Popen(
            words, env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def ended(self, process):
        """What a program prints until it ends, and its exit code."""
        try:
            said, _ = process.communicate(timeout=TRIAL_SECS_MAX)
        finally:
            process.kill()
        return said, process.returncode

    def read_until(self, process, text):
        """What a program prints, up to the line with a text."""
        lines = []
        for line in process.stdout:
            lines.append(line)
            if text in line:
                return "".join(lines)
        raise AssertionError("".join(lines))

    def outcomes(self):
        """What the report says, as JSON and by sentence."""
        told = json.loads(self.report.read_text().split("```json\n")[1].split("```")[0])
        return told, {one["check"]: (one["outcome"], one.get("reason", "")) for one in told["checks"]}

    def assert_nothing_is_left(self):
        session = boto3.Session(emulator.ACCESS_KEY, emulator.SECRET_KEY, region_name=emulator.REGION)

        def listed(service, operation, member, **arguments):
            pages = session.client(service, endpoint_url=self.machine.url).get_paginator(operation)
            return [one for page in pages.paginate(**arguments) for one in page.get(member, [])]

        states = [one["StackStatus"] for one in listed("cloudformation", "list_stacks", "StackSummaries")]
        self.assertEqual(set(states) - {"DELETE_COMPLETE"}, set())
        self.assertEqual(listed("sqs", "list_queues", "QueueUrls"), [])
        self.assertEqual(listed("s3", "list_buckets", "Buckets"), [])
        self.assertEqual(listed("logs", "describe_log_groups", "logGroups"), [])
        self.assertEqual(listed("lambda", "list_functions", "Functions"), [])
        self.assertEqual(listed("iam", "list_policies", "Policies", Scope="Local"), [])
        self.assertEqual(listed("iam", "list_roles", "Roles", PathPrefix="/posthaste-trial-"), [])
        aliases = [one["AliasName"] for one in listed("kms", "list_aliases", "Aliases")]
        self.assertEqual([one for one in aliases if "trial" in one], [])

    def test_everything_passes_but_what_an_emulator_does_not_show(self):
        said, code = self.ended(self.start())
        self.assertEqual(code, 0, said)
        told, outcomes = self.outcomes()
        skipped = {name: reason for name, (outcome, reason) in outcomes.items() if outcome == "skipped"}
        for (name, reason), sentence in zip(skipped.items(), NOT_SHOWN, strict=True):
            self.assertTrue(name.startswith(sentence), name)
            self.assertTrue(reason.startswith("not shown by an emulator: "), reason)
        self.assertEqual({outcome for outcome, _ in outcomes.values()}, {"passed", "skipped"}, said)
        self.assertEqual(told["latencyMs"]["arrival"]["events"], 25)
        self.assertLess(told["dollarsAtMost"], 0.10)
        self.assertLess(told["minutes"], 45)
        self.assertNotIn("000000000000", self.report.read_text())
        self.assert_nothing_is_left()

    def test_a_right_that_is_missing_fails_and_all_is_removed(self):
        # Each change of a topic is in the audit trail before it is made.
        process = self.start(
            "--check", "an event arrives", "--check", "was denied a right",
            template=self.adapted("ManageRole", "WriteAndShowAudit"),
        )
        said, code = self.ended(process)
        self.assertEqual(code, 1, said)
        _, outcomes = self.outcomes()
        self.assertEqual(outcomes["an event arrives, with a signature that verifies"][0], "failed", said)
        outcome, reason = outcomes["no function was denied a right"]
        self.assertEqual(outcome, "failed", said)
        self.assertIn("AccessDenied", reason)
        self.assertEqual(outcomes["everything that was made is removed"][0], "passed")
        self.assert_nothing_is_left()

    def test_a_trial_that_is_interrupted_removes_what_it_made(self):
        process = self.start()
        self.read_until(process, "an event arrives")
        process.send_signal(signal.SIGINT)
        said, code = self.ended(process)
        self.assertEqual(code, 1, said)
        told, outcomes = self.outcomes()
        self.assertTrue(told["interrupted"])
        self.assertEqual(outcomes["everything that was made is removed"][0], "passed")
        self.assert_nothing_is_left()

    def test_what_a_killed_trial_left_is_removed_by_its_name(self):
        process = self.start()
        said = self.read_until(process, "are deployed as a stack")
        process.kill()
        self.ended(process)
        [name] = set(re.findall(removal.NAME, said))
        # Another trial is none of its business.
        said, code = self.ended(self.remove("posthaste-trial-000000"))
        self.assertEqual((code, said), (0, "posthaste-trial-000000: nothing is left\n"))
        session = boto3.Session(emulator.ACCESS_KEY, emulator.SECRET_KEY, region_name=emulator.REGION)
        cloudformation = session.client("cloudformation", endpoint_url=self.machine.url)
        [stack] = cloudformation.describe_stacks(StackName=name)["Stacks"]
        self.assertEqual(stack["StackStatus"], "CREATE_COMPLETE")
        said, code = self.ended(self.remove(name))
        self.assertEqual((code, said), (0, f"{name}: nothing is left\n"))
        self.assert_nothing_is_left()

    def test_what_is_no_trial_is_not_removed(self):
        said, code = self.ended(self.remove("posthaste"))
        self.assertEqual(code, 1)
        self.assertIn("'posthaste' is no trial", said)
