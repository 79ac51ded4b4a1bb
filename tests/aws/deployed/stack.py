"""The template deployed on an emulator by `infra/emulator/up`, and the programs that a user would turn on
it."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import boto3

ROOT = pathlib.Path(__file__).resolve().parents[3]
EMULATOR = ROOT / "infra" / "emulator"

# Building nothing, `up` takes a few seconds; this is for a machine that is busy with something else.
UP_SECS_MAX = 300

# The AWS CLI of the environment that runs these tests.
AWS = pathlib.Path(sys.executable).with_name("aws")


class Failed(AssertionError):
    """A program ended with another code than 0."""

    def __init__(self, command, done):
        super().__init__(f"{command} ended with {done.returncode}:\n{done.stderr}")
        self.code, self.output = done.returncode, done.stdout


class Stack:
    """A stack on a free port, on a folder of its own, with parameters of the template. Use it in a `with`."""

    # Where its template and its `up` are.
    checkout = ROOT

    def __init__(self, **parameters):
        self.folder = tempfile.TemporaryDirectory(prefix="posthaste-deployed-")
        self.options = ["--dir", self.folder.name]
        self.given = [word for one in parameters.items() for word in ("--parameter", "=".join(one))]

    def __enter__(self):
        try:
            done = self.up(*self.given, stderr=subprocess.PIPE)
            sys.stderr.write(done.stderr)
            done.check_returncode()
            self.told, self.said = done.stdout, done.stderr
            self.described = json.loads((pathlib.Path(self.folder.name) / "stack.json").read_text())
        except BaseException:
            self.__exit__()
            raise
        self.outputs, self.environment = self.described["outputs"], self.described["environment"]
        self.publish_url = self.described["publishUrl"].rstrip("/")
        self.manage_url = self.described["manageUrl"].rstrip("/")
        self.state_bucket = self.outputs["StateBucketName"]
        self.dead_letter_bucket = self.outputs["DeadLetterBucketName"]
        self.log_bucket = self.outputs["LogBucketName"]
        self.key = self.environment["POSTHASTE_KEY"]
        return self

    def __exit__(self, *_):
        subprocess.run([EMULATOR / "down", *self.options], check=True)
        left = self.processes()
        self.folder.cleanup()
        if left:
            raise AssertionError(f"down left processes behind: {left}")

    def up(self, *more, stderr=None):
        """Runs `up`."""
        arguments = [*self.options, "--port", "0", "--binaries", self.binaries(), *more]
        command = [self.checkout / "infra" / "emulator" / "up", *arguments]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=stderr, text=True, timeout=UP_SECS_MAX)

    def binaries(self):
        """The folder of the functions' programs."""
        return os.environ["POSTHASTE_FUNCTIONS"]

    def processes(self):
        """The processes that run in the stack's folder, the emulator and its functions, by their ids."""
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if (process / "cwd").resolve().is_relative_to(pathlib.Path(self.folder.name).resolve()):
                    found.append(int(process.name))
            except OSError:
                continue
        return found

    def client(self, service):
        """A client of AWS, as any program has one."""
        access, secret = (self.environment[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
        return boto3.client(
            service, endpoint_url=self.environment["AWS_ENDPOINT_URL"], aws_access_key_id=access,
            aws_secret_access_key=secret, region_name=self.environment["AWS_DEFAULT_REGION"],
        )

    def function(self, name):
        """A function's name on AWS, by its name here."""
        return self.described["resources"][f"{name.capitalize()}Function"]

    def logs(self, function):
        """What a function has logged, line by line, in its own log group."""
        name = f"/aws/lambda/posthaste/{function}"
        pages = self.client("logs").get_paginator("filter_log_events").paginate(logGroupName=name)
        return [line for page in pages for event in page["events"] for line in event["message"].splitlines()]

    def emulator_log(self):
        return (pathlib.Path(self.folder.name) / "emulator.log").read_text()

    def objects(self, bucket, prefix=""):
        """The keys in a bucket."""
        pages = self.client("s3").get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return [one["Key"] for page in pages for one in page.get("Contents", [])]

    def read(self, bucket, key):
        """The bytes of an object."""
        return self.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()

    def posthaste(self, *arguments, text=None):
        """Runs the program, which must succeed, and answers its JSON. It finds the stack as a user's shell
        does."""
        return json.loads(self.run([os.environ["POSTHASTE_BIN"], *arguments, "--json"], text=text))

    def aws_folder(self):
        """Where the AWS CLI is, version 1."""
        return AWS.parent

    def aws(self, *arguments):
        """Runs the AWS CLI, which must succeed, and answers what it printed."""
        return self.run([AWS, *arguments])

    def run(self, command, text=None):
        environment = {"PATH": os.environ["PATH"], "HOME": self.folder.name, **self.environment}
        done = subprocess.run(command, input=text, env=environment, capture_output=True, text=True, cwd=ROOT)
        if done.returncode != 0:
            raise Failed(command, done)
        return done.stdout
