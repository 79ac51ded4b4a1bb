"""template.yaml on LocalStack, from PyPI, without Docker and token: everything but the functions is created. Both
by itself and as a nested stack."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import boto3
from samtranslator.yaml_helper import yaml_parse

from checkout import ROOT

sys.path.append(str(ROOT / "tests" / "aws" / "template"))

import stack  # noqa: E402

# On an idle machine it answers after seconds, and a stack takes a quarter of a minute.
READY_SECS_MAX, STACK_SECS_MAX = 120, 400

ACCESS_KEY, REGION, BUCKET, STACK = "test", "us-east-1", "templates", "posthaste"

# Not EventBridge: it needs a package that has to be built.
SERVICES = "cloudformation,cloudwatch,iam,logs,s3,sqs,ssm,sts"

CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]
PARAMETERS = {"AdminKeySha256": "0" * 64}

# Functions run in Docker, and without one LocalStack makes none. In the place of each there is a parameter of its
# name, so that what refers to the function still can. The same goes for what a function has to answer for.
FUNCTIONS = ("AWS::Serverless::Function", "Custom::StateClaim")
# What monitor makes. CloudFormation makes it here.
MADE_QUEUE = "Custom::Queue"
# What is a part of a function.
PARTS = ("AWS::Lambda::Url", "AWS::Lambda::Permission", "AWS::ApiGatewayV2::Integration")


class LocalStack:
    """LocalStack on a free port, its data in a folder of its own. Use it in a `with`."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="posthaste-localstack-", ignore_cleanup_errors=True)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.log = pathlib.Path(self.folder.name) / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [pathlib.Path(os.environ["POSTHASTE_TOOLS"]) / "localstack/bin/python", "-m",
                 "localstack.runtime.main"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder.name, start_new_session=True,
                env=self.environment(f"127.0.0.1:{port}"),
            )
        try:
            until(self.is_ready, READY_SECS_MAX, f"LocalStack: {self.log.read_text(errors='replace')[-2000:]}")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        # It takes its time to end in order, and nothing of it is needed any more.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.folder.cleanup()

    def environment(self, address):
        """All that it sees: nothing that listens elsewhere, asks the network or reports home."""
        place = pathlib.Path(self.folder.name)
        return {
            "PATH": os.environ["PATH"], "HOME": str(place), "TMPDIR": str(place),
            "LOCALSTACK_VOLUME_DIR": str(place / "volume"), "GATEWAY_LISTEN": address, "LOCALSTACK_HOST": address,
            "GATEWAY_SERVER": "hypercorn", "SQS_ENDPOINT_STRATEGY": "path", "SQS_DISABLE_CLOUDWATCH_METRICS": "1",
            "DNS_ADDRESS": "0", "DISABLE_EVENTS": "1", "SKIP_SSL_CERT_DOWNLOAD": "1", "SERVICES": SERVICES,
        }

    def is_ready(self):
        if self.process.poll() is not None:
            raise AssertionError(f"LocalStack ended: {self.log.read_text(errors='replace')[-2000:]}")
        try:
            with urllib.request.urlopen(f"{self.url}/_localstack/health", timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            return False

    def client(self, service):
        session = boto3.Session(ACCESS_KEY, ACCESS_KEY, region_name=REGION)
        return session.client(service, endpoint_url=self.url)


def until(answer, seconds, what):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if answered := answer():
            return answered
        time.sleep(0.2)
    raise AssertionError(f"{what}: nothing after {seconds} s")


def without_functions():
    """The template, and the names of what stands for a function in it."""
    template = yaml_parse((ROOT / "template.yaml").read_text())
    del template["Globals"]
    standing = set()
    for name, resource in list(template["Resources"].items()):
        if resource["Type"] in PARTS:
            del template["Resources"][name]
        elif resource["Type"] == MADE_QUEUE:
            standing.add(name)
            named = {"QueueName": resource["Properties"]["QueueName"]}
            template["Resources"][name] = {
                "Type": "AWS::SQS::Queue", "Properties": named, "DependsOn": resource["DependsOn"],
            }
        elif resource["Type"] in FUNCTIONS:
            standing.add(name)
            kept = {member: resource[member] for member in ("Condition", "DependsOn") if member in resource}
            value = {"Type": "String", "Name": {"Fn::Sub": f"${{AWS::StackName}}-{name}"}, "Value": name}
            template["Resources"][name] = {"Type": "AWS::SSM::Parameter", "Properties": value, **kept}
    gone = ("FunctionUrl", "PublishApi", "ManageApi")
    for name, output in list(template["Outputs"].items()):
        if any(part in json.dumps(output) for part in gone):
            del template["Outputs"][name]
    return template, standing


def expected(given):
    """The resources that CloudFormation makes of the template with these parameters, but for functions."""
    template = stack.read()
    made = stack.Stack(template, {**stack.defaults(template), **given})
    kinds = {name: one["Type"] for name, one in made.resources.items()}
    others = ("AWS::Lambda::", "AWS::Events::", MADE_QUEUE, *FUNCTIONS)
    return {name: kind for name, kind in kinds.items() if not kind.startswith(others)}


class OnLocalStack(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.localstack = cls.enterClassContext(LocalStack())
        cls.cloudformation = cls.localstack.client("cloudformation")
        cls.template, cls.standing = without_functions()
        cls.localstack.client("s3").create_bucket(Bucket=BUCKET)

    def deploy(self, name, template, **parameters):
        """Makes a stack of a template that is in a bucket, as `samlocal deploy` does it: it is too long for a
        request."""
        key = f"{name}.json"
        self.localstack.client("s3").put_object(Bucket=BUCKET, Key=key, Body=json.dumps(template).encode())
        self.cloudformation.create_stack(
            StackName=name, TemplateURL=f"{self.localstack.url}/{BUCKET}/{key}", Capabilities=CAPABILITIES,
            Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
        )
        ended = until(lambda: self.ended(name), STACK_SECS_MAX, f"the stack {name}")
        self.assertEqual(ended, "CREATE_COMPLETE", self.failures(name))

    def ended(self, name):
        [described] = self.cloudformation.describe_stacks(StackName=name)["Stacks"]
        status = described["StackStatus"]
        return None if status.endswith("IN_PROGRESS") else status

    def failures(self, name):
        events = self.cloudformation.describe_stack_events(StackName=name)["StackEvents"]
        failed = (one for one in events if one["ResourceStatus"].endswith("FAILED"))
        return [f"{one['LogicalResourceId']}: {one.get('ResourceStatusReason')}" for one in failed]

    def made(self, name):
        """What a stack has made, by the names in the template, without what stands for functions."""
        found = self.cloudformation.describe_stack_resources(StackName=name)["StackResources"]
        self.assertEqual({one["ResourceStatus"] for one in found}, {"CREATE_COMPLETE"})
        return {
            one["LogicalResourceId"]: one["ResourceType"] for one in found
            if one["LogicalResourceId"] not in self.standing
        }

    def test_all_but_the_functions_is_created(self):
        self.deploy(STACK, self.template, **PARAMETERS)
        self.assertEqual(self.made(STACK), expected(PARAMETERS))

    def test_it_is_created_as_a_nested_stack(self):
        given = {**PARAMETERS, "Alarms": "none"}
        self.localstack.client("s3").put_object(
            Bucket=BUCKET, Key="nested.json", Body=json.dumps(self.template).encode()
        )
        url = f"{self.localstack.url}/{BUCKET}/nested.json"
        nested = {"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": url, "Parameters": given}}
        self.deploy("outer", {"Resources": {"Posthaste": nested}})
        [inner] = self.cloudformation.describe_stack_resources(StackName="outer")["StackResources"]
        self.assertEqual(self.made(inner["PhysicalResourceId"]), expected(given))


if __name__ == "__main__":
    unittest.main()
