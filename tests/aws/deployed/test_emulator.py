"""`infra/emulator/up` and `down`, as a user has them."""

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import unittest

from case import Case
from stack import EMULATOR, ROOT

PROGRAMS = ("posthaste-delivery", "posthaste-log")

# A program that is not one of ours, whatever it is asked.
ANOTHER_PROGRAM = "#!/bin/sh\necho of another product\n"


class Emulator(Case):
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
        repository, build, apply, publish, _ = said
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

    def test_up_says_where_the_log_is(self):
        self.assertIn(f"the emulator's log   {self.stack.folder.name}/emulator.log", self.stack.said)

    def test_the_command_that_up_shows_for_queues_works_with_version_1(self):
        [line] = [one for one in self.stack.said.splitlines() if one.strip().startswith("aws sqs")]
        command, comment = line.strip().split("#")
        self.assertIn("AWS CLI 1 ignores the variable", comment)
        shown = self.stack.run(["sh", "-c", f'PATH={self.stack.aws_folder()}:"$PATH"; {command}'])
        self.assertIn("deliveries", shown)


class Trouble(unittest.TestCase):
    """What `up` says where it cannot begin: one sentence, at once, with nothing built or started."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="posthaste-up-")))
        self.tools = self.folder / "tools"
        self.tools.mkdir()
        down = [EMULATOR / "down", "--dir", self.folder / "stack"]
        self.addCleanup(subprocess.run, down, check=True, capture_output=True)

    def up(self, *arguments):
        """Runs `up` with this machine's programs, but for its cargo, and answers its code and sentence."""
        for folder in filter(os.path.isdir, os.environ["PATH"].split(":")):
            for program in os.scandir(folder):
                if program.name != "cargo" and not (self.tools / program.name).is_symlink():
                    with contextlib.suppress(FileExistsError):
                        (self.tools / program.name).symlink_to(os.path.abspath(program.path))
        place = self.folder / "stack"
        done = subprocess.run(
            [EMULATOR / "up", "--dir", place, *arguments], capture_output=True, text=True,
            env={**os.environ, "PATH": str(self.tools)},
        )
        self.assertEqual(done.stdout, "")
        self.assertNotIn("Traceback", done.stderr)
        self.assertFalse((place / "stack.json").exists())
        return done.returncode, done.stderr

    def cargo(self, lines):
        """Puts a cargo in the place of the real one."""
        (self.tools / "cargo").write_text(f"#!/bin/sh\n{lines}\n")
        (self.tools / "cargo").chmod(0o755)

    def programs(self, text, mode=0o755):
        """A folder with these in the place of both programs."""
        folder = self.folder / "programs"
        folder.mkdir()
        for name in PROGRAMS:
            (folder / name).write_text(text)
            (folder / name).chmod(mode)
        return folder

    def test_without_cargo_up_says_how_to_get_it(self):
        code, said = self.up("--port", "0")
        self.assertEqual(code, 1)
        self.assertIn("cargo is not on the PATH", said)
        self.assertIn("https://rustup.rs", said)
        self.assertIn("--binaries", said)

    def test_a_taken_port_is_named_before_anything_is_built(self):
        self.cargo(f"touch {self.folder}/built; exit 1")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            code, said = self.up("--port", str(port))
        self.assertEqual(code, 1)
        self.assertIn(f"port {port} is not free", said)
        self.assertIn("--port", said)
        self.assertFalse((self.folder / "built").exists())

    def test_a_port_that_there_is_not_is_refused(self):
        for port in ("65536", "-1", "http"):
            with self.subTest(port=port):
                code, said = self.up(f"--port={port}")
                self.assertEqual(code, 2)
                self.assertIn(f"'{port}' is no port", said)

    def test_a_build_that_fails_ends_with_a_sentence(self):
        self.cargo("echo it does not compile >&2; exit 101")
        code, said = self.up("--port", "0")
        self.assertEqual(code, 1)
        self.assertEqual(
            said.splitlines()[-2:],
            ["it does not compile", "up: cargo build ended with 101; what it said stands above"],
        )

    def test_programs_that_are_not_there_are_named(self):
        code, said = self.up("--port", "0", "--binaries", str(self.folder / "none"))
        self.assertEqual(code, 1)
        self.assertIn(f"{self.folder}/none/posthaste-delivery is not there", said)

    def test_programs_that_do_not_run_are_named(self):
        for text, mode, reason in (
            (ANOTHER_PROGRAM, 0o644, "does not run on this machine: Permission denied"),
            ("\x7fELF of another processor", 0o755, "does not run on this machine: Exec format error"),
            ("#!/of/another/system", 0o755, "does not run on this machine: No such file or directory"),
            (ANOTHER_PROGRAM, 0o755, "it ended with 0, and said of another product"),
            ("#!/bin/sh\nexit 127\n", 0o755, "it ended with 127, and said nothing"),
        ):
            with self.subTest(reason=reason):
                folder = self.programs(text, mode)
                code, said = self.up("--port", "0", "--binaries", str(folder))
                shutil.rmtree(folder)
                self.assertEqual(code, 1)
                self.assertIn(f"{folder}/posthaste-delivery", said)
                self.assertIn(reason, said)

    def test_a_deployment_that_fails_says_where_the_log_is(self):
        # They answer to a look as ours do, and are small to upload.
        functions = self.programs("#!/bin/sh\necho the handler is not in this program; exit 1\n")
        code, said = self.up("--port", "0", "--binaries", str(functions), "--parameter", "PublishMemory=1")
        self.assertEqual(code, 1)
        self.assertIn(f"the emulator's log   {self.folder}/stack/emulator.log", said)
        self.assertTrue((self.folder / "stack" / "emulator.log").is_file())
