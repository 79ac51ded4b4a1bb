"""A deployment without a compiler: what a release has for AWS, deployed by `sam` alone onto an emulator, with the
programs of the tests."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import emulated
import page
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

    def run_block(self, block, folder):
        """Runs the commands of the page, with the version, the machine and the bucket in their places, and no
        compiler on the way to them."""
        tools = pathlib.Path(os.environ["POSTHASTE_TOOLS"])
        programs = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (programs / "sam").symlink_to(tools / "sam/bin/sam")
        (programs / "aws").symlink_to(tools / "cli/bin/aws")
        path = f"{programs}:/usr/bin:/bin"
        self.assertIsNone(shutil.which("cargo", path=path))
        variables = {
            "PATH": path, "HOME": str(self.folder), "SAM_CLI_TELEMETRY": "0", "DIGEST": "0" * 64, **self.environment,
        }
        for placeholder, value in (("-X-", f"-{VERSION}-"), ("/X/", f"/{VERSION}/"), ("=X", f"={VERSION}"),
                                   ("BUCKET", "releases"), ("arm64", "x86_64")):
            block = block.replace(placeholder, value)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block], cwd=folder, env=variables, stdin=subprocess.DEVNULL,
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
        [folder, _] = page.blocks("aws.md", __file__)
        self.run_block(folder, self.out)
        self.check()

    def test_bucket_of_releases_is_deployed_from(self):
        emulated.client("s3", self.environment).create_bucket(Bucket="releases")
        [_, bucket] = page.blocks("aws.md", __file__)
        # The emulator runs programs of this machine, and the template's default is another one.
        self.run_block(bucket.rstrip() + " Architecture=x86_64\n", self.out)
        self.check()


if __name__ == "__main__":
    unittest.main()
