"""The stack on the emulator: code and template uploaded, the stack made, and what came of it read."""

import json
import tempfile

import boto3

import emulator
import package
import template

CODE_BUCKET = "posthaste-code"

# CloudFormation's own limit of a stack's life is longer; here the whole stack takes a second or two.
STACK_SECS_MAX = 120

CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]


class Cloud:
    """Clients of the emulator, and a stack on it."""

    def __init__(self, url, stack):
        self.url, self.stack = url, stack
        self.session = boto3.Session(emulator.ACCESS_KEY, emulator.SECRET_KEY, region_name=emulator.REGION)

    def client(self, service):
        return self.session.client(service, endpoint_url=self.url)

    def upload(self, programs, parameters):
        """Code and template, in a bucket beside the stack's own, as `sam deploy` does it."""
        s3 = self.client("s3")
        s3.create_bucket(Bucket=CODE_BUCKET)
        for name, program in programs.items():
            with tempfile.NamedTemporaryFile(suffix=".zip") as archive:
                package.pack(program, archive.name)
                s3.upload_file(archive.name, CODE_BUCKET, f"{name}.zip")
        body = json.dumps(template.local(CODE_BUCKET, parameters)).encode()
        s3.put_object(Bucket=CODE_BUCKET, Key="template.json", Body=body)

    def create(self, parameters):
        """Makes the stack and waits until it is complete."""
        cloudformation = self.client("cloudformation")
        cloudformation.create_stack(
            StackName=self.stack,
            TemplateURL=f"{self.url}/{CODE_BUCKET}/template.json",
            Capabilities=CAPABILITIES,
            Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
        )
        status = emulator.until(self._status, STACK_SECS_MAX, f"the stack {self.stack}")
        if status != "CREATE_COMPLETE":
            raise emulator.Trouble(
                f"the stack {self.stack} ended as {status}:\n" + "\n".join(self._failures())
            )

    def described(self):
        """The stack's outputs, and its resources by their names in the template."""
        cloudformation = self.client("cloudformation")
        [stack] = cloudformation.describe_stacks(StackName=self.stack)["Stacks"]
        resources = cloudformation.describe_stack_resources(StackName=self.stack)["StackResources"]
        return {
            "outputs": {one["OutputKey"]: one["OutputValue"] for one in stack.get("Outputs", [])},
            "resources": {one["LogicalResourceId"]: one["PhysicalResourceId"] for one in resources},
        }

    def reachable(self, stack, function):
        """The URL of publish or manage as this machine can reach it: the names that AWS and a domain give it
        resolve nowhere."""
        if api := stack["resources"].get(f"{function}Api"):
            return f"{self.url}/_aws/execute-api/{api}/"
        name = stack["outputs"][f"{function}Url"].split("://", 1)[1].split(".", 1)[0]
        return f"{self.url}/_aws/lambda-url/{name}/"

    def set_variable(self, function, name, value):
        """Changes one environment variable of a function."""
        functions = self.client("lambda")
        variables = functions.get_function_configuration(FunctionName=function)["Environment"]["Variables"]
        functions.update_function_configuration(
            FunctionName=function, Environment={"Variables": {**variables, name: value}}
        )

    def _status(self):
        [stack] = self.client("cloudformation").describe_stacks(StackName=self.stack)["Stacks"]
        status = stack["StackStatus"]
        return None if status.endswith("IN_PROGRESS") else status

    def _failures(self):
        events = self.client("cloudformation").describe_stack_events(StackName=self.stack)["StackEvents"]
        failed = (one for one in events if one["ResourceStatus"].endswith("FAILED"))
        return [
            f"{one['LogicalResourceId']}: {one.get('ResourceStatusReason', 'no reason')}" for one in failed
        ]
