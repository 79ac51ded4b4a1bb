"""A deployment without a compiler: what a release has for AWS, deployed by `sam` alone onto an emulator, with the
programs of the tests."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import emulated
from checkout import ROOT

sys.path.append(str(ROOT / "packaging"))

import functions  # noqa: E402

STACK = "posthaste"
VERSION = "1.2.3"


class Release(unittest.TestCase):
    """The folder, whose programs lie beside the template, and the template whose programs lie in a bucket."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.out = cls.folder / "out"
        cls.out.mkdir()
        built = pathlib.Path(os.environ["POSTHASTE_FUNCTIONS"])
        programs = {name: built / name for name in functions.FUNCTIONS}
        functions.make(programs, "x86_64", VERSION, cls.folder, cls.out)

    def setUp(self):
        self.environment = self.enterContext(emulated.environment())

    def sam(self, folder, *words):
        """Deploys with `sam`, and with nothing else that is not of every machine."""
        path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (path / "sam").symlink_to(pathlib.Path(os.environ["POSTHASTE_TOOLS"], "sam/bin/sam"))
        variables = {"PATH": str(path), "HOME": str(self.folder), "SAM_CLI_TELEMETRY": "0", **self.environment}
        done = subprocess.run(
            [path / "sam", "deploy", *words], cwd=folder, env=variables, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        self.assertEqual(done.returncode, 0, done.stdout)

    def check(self):
        """Each function has its program, of which `manage` answers."""
        resources = emulated.client("cloudformation", self.environment).describe_stack_resources(StackName=STACK)
        names = [
            one["PhysicalResourceId"] for one in resources["StackResources"]
            if one["ResourceType"] == "AWS::Lambda::Function"
        ]
        self.assertEqual(len(names), 7)
        client = emulated.client("lambda", self.environment)
        sizes = {path.name: path.stat().st_size for path in self.out.glob("*.zip")}
        for name in names:
            self.assertIn(client.get_function(FunctionName=name)["Configuration"]["CodeSize"], sizes.values())
        [manage] = [name for name in names if "Manage" in name]
        request = {
            "version": "2.0", "rawPath": "/topics", "rawQueryString": "", "headers": {}, "isBase64Encoded": False,
            "requestContext": {"http": {"method": "GET", "path": "/topics", "sourceIp": "192.0.2.1"}},
        }
        answer = client.invoke(FunctionName=manage, Payload=json.dumps(request))
        self.assertEqual(json.load(answer["Payload"])["statusCode"], 401)

    def test_folder_is_deployed_as_it_is(self):
        subprocess.run(["tar", "-xzf", *self.out.glob("*.tar.gz")], cwd=self.folder, check=True)
        [unpacked] = [path for path in self.folder.glob("posthaste-*-lambda-*") if path.is_dir()]
        self.sam(unpacked, "--parameter-overrides", f"AdminKeySha256={'0' * 64}")
        self.check()

    def test_bucket_of_releases_is_deployed_from(self):
        s3 = emulated.client("s3", self.environment)
        s3.create_bucket(Bucket="releases")
        for path in self.out.glob("*.zip"):
            s3.upload_file(str(path), "releases", f"{VERSION}/{path.name}")
        self.sam(
            self.out, "--template-file", "template.yaml", "--stack-name", STACK, "--capabilities", "CAPABILITY_IAM",
            "--resolve-s3", "--parameter-overrides", f"AdminKeySha256={'0' * 64}", "ReleaseBucket=releases",
            f"ReleaseVersion={VERSION}", "Architecture=x86_64",
        )
        self.check()


if __name__ == "__main__":
    unittest.main()
