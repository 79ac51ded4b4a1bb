"""The rights of who deploys (samples/aws/deployer.json), which the emulator holds a user to. What CloudFormation calls
with them is held in tests/aws/template: the emulator does not ask for it."""

import json
import pathlib
import re
import tempfile

import boto3
import case
import waiting
from botocore.exceptions import ClientError
from case import Case
from installation import CAPABILITIES
from stack import ROOT

PAGE = ROOT / "docs" / "src" / "operating" / "aws.md"
[BLOCK] = re.findall(
    r"<!-- run by: tests/aws/deployed/test_deployer.py -->\n```sh\n(.*?)```", PAGE.read_text(), re.DOTALL
)

ACCOUNT, REGION = "000000000000", "us-east-1"


class Deployer(Case):
    @classmethod
    def setUpClass(cls):
        """A user who has the policy, made by the commands of the page."""
        stack = case.STACK
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "samples").symlink_to(ROOT / "samples")
            where = f"export PATH={stack.aws_folder()}:$PATH ACCOUNT={ACCOUNT} REGION={REGION}"
            made = stack.run(["bash", "-euo", "pipefail", "-c", f"{where}; cd {folder}\n{BLOCK}"])
        users = stack.client("iam")
        users.create_user(UserName="deployer")
        users.attach_user_policy(UserName="deployer", PolicyArn=json.loads(made)["Policy"]["Arn"])
        key = users.create_access_key(UserName="deployer")["AccessKey"]
        cls.session = boto3.Session(key["AccessKeyId"], key["SecretAccessKey"], region_name=REGION)

    def client(self, service):
        return self.session.client(service, endpoint_url=self.stack.environment["AWS_ENDPOINT_URL"])

    def assert_denied(self, call, **arguments):
        with self.assertRaises(ClientError) as denied:
            call(**arguments)
        self.assertIn("AccessDenied", denied.exception.response["Error"]["Code"])

    def test_the_stack_is_looked_at_and_no_other(self):
        cloudformation = self.client("cloudformation")
        [stack] = cloudformation.describe_stacks(StackName="posthaste")["Stacks"]
        self.assertEqual(stack["StackStatus"], "CREATE_COMPLETE")
        self.assert_denied(cloudformation.delete_stack, StackName="accounting")

    def test_an_update_is_prepared_as_sam_deploy_does_it(self):
        cloudformation, name = self.client("cloudformation"), {"StackName": "posthaste", "ChangeSetName": "louder"}
        [stack] = cloudformation.describe_stacks(StackName="posthaste")["Stacks"]
        others = [one["ParameterKey"] for one in stack["Parameters"] if one["ParameterKey"] != "LogLevel"]
        cloudformation.create_change_set(
            **name, UsePreviousTemplate=True, Capabilities=CAPABILITIES,
            Parameters=[{"ParameterKey": "LogLevel", "ParameterValue": "debug"}]
            + [{"ParameterKey": one, "UsePreviousValue": True} for one in others],
        )
        waiting.until(
            lambda: cloudformation.describe_change_set(**name)["Status"] == "CREATE_COMPLETE", "the change set"
        )
        cloudformation.delete_change_set(**name)
        self.assert_denied(
            cloudformation.create_change_set, StackName="accounting", ChangeSetName="louder", UsePreviousTemplate=True
        )

    def test_functions_of_the_stack_are_updated_and_no_others(self):
        functions, name = self.client("lambda"), self.stack.function("record")
        memory = functions.get_function_configuration(FunctionName=name)["MemorySize"]
        changed = functions.update_function_configuration(FunctionName=name, MemorySize=memory)
        self.assertEqual(changed["MemorySize"], memory)
        self.assert_denied(functions.get_function, FunctionName="accounting")

    def test_what_waits_in_a_queue_is_neither_read_nor_purged(self):
        queues, url = self.client("sqs"), self.stack.outputs["DeliveriesQueueUrl"]
        self.assertIn("Attributes", queues.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"]))
        self.assert_denied(queues.receive_message, QueueUrl=url)
        self.assert_denied(queues.purge_queue, QueueUrl=url)

    def test_topics_with_their_secrets_are_not_read(self):
        buckets = self.client("s3")
        self.assertTrue(buckets.get_bucket_versioning(Bucket=self.stack.state_bucket))
        self.assert_denied(buckets.get_object, Bucket=self.stack.state_bucket, Key="owner.json")

    def test_roles_are_made_with_the_name_of_the_stack_alone(self):
        roles = self.client("iam")
        self.assertIn("Role", roles.get_role(RoleName=self.stack.described["resources"]["WakeRole"]))
        self.assert_denied(roles.create_role, RoleName="administrator", AssumeRolePolicyDocument="{}")
