"""`infra/localstack/up` and `down`, as a user has them."""

import contextlib
import os
import pathlib
import subprocess

from case import Case
from stack import ROOT


class LocalStack(Case):
    def test_what_up_prints_is_what_a_shell_needs(self):
        shell = 'eval "$1"; printf "%s %s %s" "$POSTHASTE_URL" "$POSTHASTE_KEY" "$AWS_ENDPOINT_URL"'
        told = subprocess.run(
            ["sh", "-c", shell, "sh", self.stack.told], capture_output=True, text=True, check=True
        )
        environment = self.stack.environment
        expected = [environment[name] for name in ("POSTHASTE_URL", "POSTHASTE_KEY", "AWS_ENDPOINT_URL")]
        self.assertEqual(told.stdout.split(), expected)
        for told in (self.stack.publish_url, self.stack.state_bucket, self.stack.dead_letter_bucket):
            self.assertIn(told, self.stack.told)

    def test_up_says_where_the_command_and_the_topic_come_from(self):
        said = [line.strip() for line in self.stack.said.partition("next, in ")[2].splitlines()]
        repository, build, apply, publish = said
        self.assertEqual(pathlib.Path(repository.rstrip(":")), ROOT)
        self.assertTrue(
            build.startswith(
                'cargo build --release --bin posthaste && export PATH="$PWD/target/release:$PATH"'
            ),
            build,
        )
        for line, program, file in (
            (apply, "posthaste apply -f", "samples/orders.yaml"),
            (publish, "posthaste publish orders --file", "samples/cloudevents/order-paid.json"),
        ):
            self.assertTrue(line.startswith(f"{program} {file}"), line)
            self.assertTrue((ROOT / file).is_file(), file)

    def test_a_second_up_says_that_one_runs_and_leaves_it_alone(self):
        again = self.stack.up(stderr=subprocess.PIPE)
        self.assertEqual((again.returncode, again.stdout), (1, ""))
        self.assertIn("already running", again.stderr)
        self.apply()

    def test_a_parameter_that_the_template_does_not_have_is_refused_by_name(self):
        wrong = self.stack.up("--parameter", "MaxEventAge=1", stderr=subprocess.PIPE)
        self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
        self.assertIn("'MaxEventAge' is no parameter of template.yaml", wrong.stderr)

    def test_a_digest_that_would_not_fit_the_printed_key_is_refused(self):
        wrong = self.stack.up("--parameter", f"AdminKeySha256={64 * '0'}", stderr=subprocess.PIPE)
        self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
        self.assertIn("AdminKeySha256 is the digest of the key that up makes and prints", wrong.stderr)

    def test_what_up_makes_is_for_its_owner_alone(self):
        self.apply()
        place = pathlib.Path(self.stack.folder.name)
        # The emulator unpacks the programs with their modes in the archive, into folders that are closed to
        # others.
        made = [place, *(one for one in place.rglob("*") if one.name != "bootstrap")]
        self.assertIn(place / "stack.json", made)
        for one in made:
            # What the emulator has removed meanwhile is no longer open to anybody.
            with contextlib.suppress(FileNotFoundError):
                self.assertTrue(one.is_symlink() or one.stat().st_mode & 0o077 == 0, one)

    def test_nothing_of_the_caller_s_environment_reaches_a_function(self):
        self.apply()
        for process in self.stack.processes():
            variables = pathlib.Path(f"/proc/{process}/environ").read_text().split("\0")
            self.assertIn("POSTHASTE_BIN", os.environ)
            self.assertEqual([one for one in variables if one.startswith("POSTHASTE_")], [])
