"""The parts of the trial in an account (tests/aws/account) that need no emulator: its price, its time, what it may
remove, and what it tells."""

import io
import pathlib
import sys
import tempfile
import types
import unittest
import zipfile

from stack import ROOT

sys.path.append(str(ROOT / "tests" / "aws" / "account"))

import checks  # noqa: E402
import deadline  # noqa: E402
import delivering  # noqa: E402
import ledger  # noqa: E402
import program  # noqa: E402
import programs  # noqa: E402
import receiver  # noqa: E402
import removal  # noqa: E402
import report  # noqa: E402

HOUR = 3600


class Clock:
    """A clock that is moved by hand, and by waiting."""

    def __init__(self):
        self.secs = 0

    def __call__(self):
        return self.secs

    def sleep(self, secs):
        self.secs += secs


class Price(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        self.books = ledger.Ledger(self.clock)

    def test_prices_are_those_of_the_cost_model(self):
        found = [ledger.price(name) for name in ("SQS_REQUEST", "S3_PUT", "S3_GET", "INVOCATION", "GB_SECOND")]
        self.assertEqual(found, [0.40 / 1e6, 5.0 / 1e6, 0.40 / 1e6, 0.20 / 1e6, 0.0000133334])
        self.assertEqual(ledger.price("ALARM_DOLLARS", ledger.ALARM_PRICES), 0.10)
        with self.assertRaises(LookupError):
            ledger.price("GOLD")

    def test_requests_have_the_price_of_their_kind(self):
        for service, operation, dollars in (
            ("s3", "PutObject", 5e-6), ("s3", "ListObjectsV2", 5e-6), ("s3", "GetObject", 0.4e-6),
            ("s3", "DeleteObject", 0), ("sqs", "GetQueueAttributes", 0.4e-6), ("kms", "ListGrants", 3e-6),
            ("cloudwatch", "ListMetrics", 1e-5), ("cloudformation", "DescribeStacks", 0), ("lambda", "GetFunction", 0),
        ):
            with self.subTest(service=service, operation=operation):
                books = ledger.Ledger(self.clock)
                books.request(service, operation)
                self.assertAlmostEqual(books.bound(), dollars, 12)

    def test_each_begun_hour_is_paid(self):
        self.clock.secs = HOUR - 1
        self.books.stands("the key", key=1)
        self.assertAlmostEqual(self.books.bound(), 1 / 720)
        self.assertAlmostEqual(self.books.bound(more_secs=2), 2 / 720)
        self.clock.secs += HOUR
        self.books.is_gone("the key")
        self.clock.secs += 10 * HOUR
        self.assertAlmostEqual(self.books.bound(), 2 / 720)

    def test_a_stack_is_paid_by_the_minute_too(self):
        self.books.stands("the stack", is_working=True)
        self.books.stands("another, which does nothing")
        self.clock.secs = 600
        minute = 120 * 0.4e-6 + 12 * 5e-6 + 100 * 0.4e-6 + 4 * 0.0000133334 + 50e-6 * 0.50
        self.assertAlmostEqual(self.books.bound(), 10 * minute)
        self.books.full(2)
        full = 150 * 0.4e-6 + 35 * 5e-6 + 70 * 0.4e-6 + 7.5 * 0.0000133334
        self.assertAlmostEqual(self.books.bound(), 10 * minute + 2 * full)

    def test_an_attempt_is_paid_with_its_logs_and_what_leaves_aws(self):
        self.books.attempts(2, secs=3.0)
        requests = 10 * 0.4e-6 + 6 * 5e-6 + 12 * 0.4e-6 + 4 * 0.2e-6
        self.assertAlmostEqual(
            self.books.bound(), 2 * (requests + 20e-6 * 0.50 + 10e-6 * 0.09) + 4 * 6 * 0.5 * 0.0000133334
        )

    def test_what_could_cost_more_than_ten_cents_is_refused(self):
        self.books.afford("a check", 0.09, 0)
        with self.assertRaises(ledger.TooDear) as refused:
            self.books.afford("a check", 0.096, 0)
        self.assertIn("a check could bring the trial to $0.101", str(refused.exception))
        self.books.attempts(100_000)
        with self.assertRaises(ledger.TooDear):
            self.books.afford("a check", 0, 0)

    def test_a_trial_of_all_its_time_costs_less_than_it_may(self):
        """What is billed by the hour stands for all of it, in two hours of the clock, with more requests than a
        trial on the emulator counts. The last check may still be run."""
        self.clock.secs = HOUR - 1
        standing = {"alarm": ledger.ALARMS, "dashboard": 1, "metric": ledger.METRICS_MAX}
        self.books.stands("the stack", is_working=True, **standing)
        self.books.stands("the rival", dashboard=1)
        self.books.stands("the key", key=1)
        self.books.full(delivering.FULL_MINUTES)
        self.books.attempts(240, 1.5)
        for service, operation, count in (("s3", "PutObject", 400), ("s3", "GetObject", 400), ("lambda", "Invoke", 60)):
            for _ in range(count):
                self.books.request(service, operation)
        self.books.afford("the last check", 0.002, deadline.ALL_SECS_MAX)


class Time(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        self.watch = deadline.Deadline(5, all_secs=1000, clock=self.clock, sleep=self.clock.sleep)

    def test_what_does_not_come_in_time_is_late(self):
        with self.assertRaises(deadline.Late) as late:
            self.watch.until(lambda: None, "an event", 20)
        self.assertEqual((str(late.exception), self.clock.secs), ("an event: not within 20 s", 20))

    def test_an_emulator_is_waited_for_longer(self):
        watch = deadline.Deadline(5, clock=self.clock, sleep=self.clock.sleep, patience=4)
        with self.assertRaises(deadline.Late):
            watch.until(lambda: None, "an event", 20)
        self.assertEqual(self.clock.secs, 80)

    def test_checks_leave_the_removal_its_time(self):
        self.assertEqual(self.watch.left(), 1000 - deadline.REMOVAL_SECS)
        with self.assertRaises(deadline.TimeIsUp):
            self.watch.until(lambda: None, "an event", 5000)
        self.assertEqual(self.clock.secs, 1000 - deadline.REMOVAL_SECS)

    def test_the_removal_goes_on_when_the_time_is_up(self):
        self.clock.secs = 2000
        self.assertEqual(self.watch.until_removed(lambda: self.clock.secs == 2010, "the end", 20), True)


class Names(unittest.TestCase):
    def test_no_other_name_than_that_of_a_trial_is_removed(self):
        for end in ("", "-trial", "-trial-", "-trial-12345g", "-trial-1234567"):
            name = f"posthaste{end}"
            with self.subTest(name), self.assertRaises(ValueError):
                removal.Removal(None, None, name)

    def test_a_trial_with_a_longer_name_is_another(self):
        remover = removal.Removal(None, None, "posthaste-trial-123456")
        found = [name for name in ("posthaste-trial-123456", "posthaste-trial-123456-rival", "posthaste-trial-1234567",
                                   "posthaste-trial-12345", "posthaste") if remover.is_of_trial(name)]
        self.assertEqual(found, ["posthaste-trial-123456", "posthaste-trial-123456-rival"])


class Outcomes(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        self.trial = types.SimpleNamespace(
            cloud=types.SimpleNamespace(is_emulator=False), report=report.Report("posthaste-trial-123456"),
            deadline=deadline.Deadline(5, clock=self.clock, sleep=self.clock.sleep), ledger=ledger.Ledger(self.clock),
        )

    def run_checks(self, *some):
        said = []
        checks.run_all(self.trial, said.append, some)
        return [(one.outcome, one.reason) for one in self.trial.report.outcomes]

    def check(self, run=lambda _: None, dollars=0.0, secs=1, is_needed=False, not_shown=None):
        return checks.Check(run, "it works", dollars, secs, is_needed, not_shown)

    def broken(self, _):
        raise AssertionError("it is broken")

    def test_a_failure_says_why_and_the_next_check_is_run(self):
        outcomes = self.run_checks(self.check(self.broken), self.check())
        self.assertEqual(outcomes, [("failed", "AssertionError: it is broken"), ("passed", None)])
        self.assertTrue(self.trial.report.has_failed())

    def test_what_stands_on_a_failure_is_skipped(self):
        outcomes = self.run_checks(self.check(self.broken, is_needed=True), self.check(self.broken))
        self.assertEqual(outcomes[1], ("skipped", "needs that it works"))

    def test_what_an_emulator_does_not_show_is_skipped_there_alone(self):
        one = self.check(not_shown="it forgets")
        self.assertEqual(self.run_checks(one), [("passed", None)])
        self.trial.cloud.is_emulator = True
        self.assertEqual(self.run_checks(one)[1:], [("skipped", "not shown by an emulator: it forgets")])

    def test_a_check_without_time_or_money_is_not_begun(self):
        late = self.check(self.broken, secs=deadline.ALL_SECS_MAX)
        outcomes = self.run_checks(late, self.check(self.broken, dollars=0.2))
        self.assertEqual([outcome for outcome, _ in outcomes], ["skipped", "skipped"])
        self.assertIn("and 2100 s are left", outcomes[0][1])
        self.assertIn("it may cost $0.10", outcomes[1][1])

    def test_a_choice_brings_what_it_needs(self):
        some = [self.check(is_needed=True), self.check(), self.check(), self.check(is_needed=True)]
        some[0].sentence, some[2].sentence, some[3].sentence = "deployed", "an event arrives", "deleted"
        found = checks.chosen(["arrives"], some)
        self.assertEqual([one.sentence for one in found], ["deployed", "an event arrives"])
        self.assertEqual(checks.chosen([], some), some)
        self.assertEqual(checks.chosen(["nothing"], some), [])

    def test_the_file_has_no_account_and_no_secret(self):
        told = self.trial.report
        told.secrets.append("a-key-of-an-operator")
        told.facts["stack"] = "arn:aws:cloudformation:us-east-1:123456789012:stack/posthaste/1"
        told.add(report.Outcome("it works", "failed", 1.0, "a|b\nwith a-key-of-an-operator of 123456789012"))
        text = told.text()
        self.assertNotIn("123456789012", text)
        self.assertNotIn("a-key-of-an-operator", text)
        self.assertIn("| it works | failed | 1.0 | a\\|b with SECRET of ACCOUNT |", text)


class Parts(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def program(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"a program")

    def names(self, zipped):
        with zipfile.ZipFile(io.BytesIO(zipped)) as found:
            return [(one.filename, one.external_attr >> 16) for one in found.infolist()]

    def test_programs_of_sam_build_are_packed(self):
        # As `sam build` writes it: functions of one program share its folder.
        (self.folder / "template.yaml").write_text("".join(
            f"  {name}:\n    Metadata: {{ BuildProperties: {{ Binary: {binary} }} }}\n"
            f"    Properties: {{ CodeUri: {code}, Role: !GetAtt Role.Arn }}\n"
            for name, binary, code in (("Wake", "posthaste-log", "Wake"), ("Deliver", "posthaste-delivery", "Publish"))
        ).join(("Resources:\n", "")))
        for name in ("Wake", "Publish"):
            self.program(self.folder / name / "bootstrap")
        zips = programs.zips(self.folder, "arm64")
        self.assertEqual(sorted(zips), ["trial/posthaste-delivery-arm64.zip", "trial/posthaste-log-arm64.zip"])
        for zipped in zips.values():
            self.assertEqual(self.names(zipped), [("bootstrap", 0o100755)])

    def test_zips_of_a_release_are_taken_as_they_are(self):
        for name in ("posthaste-delivery.zip", "posthaste-log-arm64.zip"):
            with zipfile.ZipFile(self.folder / name, "w") as zipped:
                zipped.writestr("bootstrap", b"a program")
        zips = programs.zips(self.folder, "arm64")
        self.assertEqual(zips["trial/posthaste-log-arm64.zip"], (self.folder / "posthaste-log-arm64.zip").read_bytes())

    def test_a_folder_without_programs_says_what_to_do(self):
        with self.assertRaises(programs.Missing) as missing:
            programs.zips(self.folder, "arm64")
        self.assertIn("run `sam build`", str(missing.exception))

    def test_the_template_takes_the_programs_of_the_trial_alone(self):
        text = programs.template().decode()
        self.assertIn("AllowedValues: [trial]", text)

    def test_the_receiver_s_code_fits_into_a_template(self):
        # "ZipFile" of AWS::Lambda::Function Code, in the template reference of CloudFormation.
        self.assertLess(len(receiver.CODE), 4096)

    def test_every_check_has_a_sentence_of_its_own(self):
        sentences = [one.sentence for one in checks.CHECKS]
        self.assertEqual(len(set(sentences)), len(sentences))
        self.assertEqual(sentences[0], "the receiver, template and programs are deployed as a stack")

    def test_all_checks_fit_into_the_time_where_each_takes_what_aws_takes(self):
        self.assertLessEqual(max(one.secs for one in checks.CHECKS), deadline.ALL_SECS_MAX - deadline.REMOVAL_SECS)

    def test_a_report_that_cannot_be_written_is_refused_before_anything_is_made(self):
        for name in ("posthaste-delivery", "posthaste-log"):
            self.program(self.folder / name)
        # Nothing listens there: a request would be another error.
        words = ["--yes", "--region", "us-east-1", "--endpoint-url", "http://127.0.0.1:9", "--report", "/no/such/f.md"]
        with self.assertRaises(FileNotFoundError):
            program.run(program.arguments([*words, "--programs", str(self.folder)]))

    def test_an_unknown_choice_is_refused_before_anything_is_made(self):
        words = ["--programs", str(self.folder), "--check", "no such check"]
        for name in ("posthaste-delivery", "posthaste-log"):
            self.program(self.folder / name)
        with self.assertRaises(ValueError) as refused:
            program.run(program.arguments(words))
        self.assertIn("no such check", str(refused.exception))


if __name__ == "__main__":
    unittest.main()
