"""The rights of who deploys (samples/aws/deployer.json), held against AWS's own schemas of the resource types that the
template has: each says what CloudFormation calls, with the rights of who deploys, to make, read, change and delete one.
cfn-lint brings them."""

import fnmatch
import json
import re
import unittest

import stack
import tools

DOCUMENT = stack.ROOT / "samples/aws/deployer.json"
PAGE = stack.ROOT / "docs/src/operating/aws.md"

# The most characters of a managed policy, without white space.
# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
CHARACTERS_MAX = 6_144

# What CloudFormation calls for properties that the template does not have, as patterns, by these properties.
NOT_CALLED = {
    "tables of a bucket's metadata": ["s3tables:*", "s3:*MetadataTableConfiguration", "s3:UpdateBucketMetadata*"],
    "what a bucket may have beside": [
        "s3:*BucketAbac", "s3:*BucketAcl", "s3:*BucketAnalyticsConfiguration", "s3:*BucketCors", "s3:*BucketCORS",
        "s3:*BucketLogging", "s3:*BucketMetricsConfiguration", "s3:*BucketNotification", "s3:*Replication*",
        "s3:*BucketWebsite", "s3:*ObjectLock*", "s3:Put*Acl", "s3:PutAccelerateConfiguration",
        "s3:PutAnalyticsConfiguration", "s3:PutIntelligentTieringConfiguration", "s3:PutInventoryConfiguration",
        "s3:PutMetricsConfiguration",
    ],
    "rules and encryption that are taken off a bucket": ["s3:DeleteBucketEncryption", "s3:DeleteBucketLifecycle"],
    "objects of a bucket": ["s3:DeleteObject"],
    "a body or a trust store of an API in S3": ["s3:getObject"],
    "file systems of a function": ["elasticfilesystem:*", "s3files:*"],
    "signed code, layers, versions and capacity of a function": [
        "lambda:*CodeSigningConfig", "lambda:GetLayerVersion", "lambda:AssociateRuntimeAlias",
        "lambda:PassCapacityProvider", "lambda:PutFunctionScalingConfig", "lambda:PutRuntimeManagementConfig",
    ],
    "policies, deliveries and protections of a log group": [
        "firehose:*", "s3:REST.PUT.OBJECT", "logs:CreateLogDelivery", "logs:*ResourcePolicy",
        "logs:PutBearerTokenAuthentication", "logs:PutDataProtectionPolicy", "logs:PutIndexPolicy",
        "logs:PutLogGroupDeletionProtection",
    ],
}

# Beside what schemas say. Custom resources are asked with the rights of who deploys, and the rest is what
# `sam deploy` and `sam delete` call themselves.
CALLED_BESIDE = {
    "lambda:InvokeFunction", "s3:PutObject", "s3:GetObject", "cloudformation:CreateChangeSet",
    "cloudformation:DescribeChangeSet", "cloudformation:ExecuteChangeSet", "cloudformation:DescribeStacks",
    "cloudformation:DescribeStackEvents", "cloudformation:DeleteStack", "cloudformation:GetTemplateSummary",
}

# Actions that AWS lets nobody bind to a resource, or to one whose name is known before.
ON_ANYTHING = {
    "LookAtTemplates", "EventSources", "LookAtLogGroups", "LookAtAlarms", "LookAtVariables", "OnlyWithANetwork",
}


def schema(kind):
    """AWS's schema of a resource type, as cfn-lint has it; nothing of a custom resource."""
    [folder] = (tools.TOOLS / "cfn-lint").glob("lib/python3.*/site-packages/cfnlint/data/schemas")
    index = json.loads((folder / "providers/us-east-1.json").read_text())
    return json.loads((folder / "resources" / f"{index[kind]}.json").read_text()) if kind in index else {}


def called():
    """What CloudFormation calls for the template's resource types, by action, with where."""
    template = stack.read()
    given = stack.everything(template), stack.everything_behind_function_urls(template)
    kinds = {one["Type"] for one in template["Resources"].values()}
    kinds |= {one["Type"] for more in given for one in stack.Stack(template, more).resources.values()}
    found = {}
    for kind in kinds:
        for handler, said in schema(kind).get("handlers", {}).items():
            for action in said["permissions"] if handler != "list" else ():
                found.setdefault(action, set()).add(f"{kind}: {handler}")
    return found


def matches(action, patterns):
    return any(fnmatch.fnmatchcase(action, pattern) for pattern in patterns)


class Deployer(unittest.TestCase):
    def setUp(self):
        self.statements = json.loads(DOCUMENT.read_text())["Statement"]
        self.granted = [one for statement in self.statements for one in listed(statement["Action"])]
        self.not_called = [one for patterns in NOT_CALLED.values() for one in patterns]

    def test_all_that_cloudformation_calls_is_granted_or_of_what_the_template_has_not(self):
        calls = called()
        self.assertIn("sqs:CreateQueue", calls)
        lacking = {action: sorted(where) for action, where in calls.items()
                   if not matches(action, self.granted) and not matches(action, self.not_called)}
        self.assertEqual(lacking, {})
        for action in CALLED_BESIDE:
            self.assertTrue(matches(action, self.granted), action)

    def test_nothing_is_left_out_that_nobody_calls(self):
        calls = called()
        self.assertEqual([one for one in self.not_called if not any(matches(call, [one]) for call in calls)], [])

    def test_only_what_looks_is_granted_by_a_pattern(self):
        for action in self.granted:
            if "*" in action:
                self.assertRegex(action, r"^[a-z0-9]+:(Get|List|Describe)", action)

    def test_what_changes_is_bound_to_names_of_the_stack(self):
        for statement in self.statements:
            resources = listed(statement["Resource"])
            if statement["Sid"] in ON_ANYTHING:
                self.assertEqual(resources, ["*"], statement["Sid"])
            else:
                for one in resources:
                    self.assertNotEqual(one, "*", statement["Sid"])

    def test_it_fits_into_a_managed_policy(self):
        self.assertLessEqual(len(re.sub(r"\s", "", DOCUMENT.read_text())), CHARACTERS_MAX)

    def test_a_role_goes_to_lambda_alone(self):
        [passing] = (one for one in self.statements if "iam:PassRole" in listed(one["Action"]))
        self.assertEqual(passing["Condition"], {"StringEquals": {"iam:PassedToService": "lambda.amazonaws.com"}})

    def test_the_page_names_each_statement_that_may_go(self):
        text = PAGE.read_text()
        for statement in self.statements:
            if statement["Sid"].startswith(("OnlyWith", "Undo")):
                self.assertTrue(f"`{statement['Sid']}`" in text, statement["Sid"])


def listed(value):
    return value if isinstance(value, list) else [value]


if __name__ == "__main__":
    unittest.main()
