"""The documents' way onto AWS, word by word, up to an emulator that takes the stack: nothing is asked, the
function that needs the admin key is given its digest alone, and later deployments keep what was given."""

import hashlib
import json
import re
import sys
import tomllib
import unittest

import emulated
import page
from checkout import ROOT, Checkout

sys.path.append(str(ROOT / "tests" / "aws" / "template"))

import stack  # noqa: E402

STACK = "posthaste"


class Deploy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.checkout = cls.enterClassContext(Checkout())
        cls.environment = cls.enterClassContext(emulated.environment())
        [commands] = page.blocks("aws.md", __file__)
        told = cls.checkout.run(f'{commands}\nprintf "\\n%s" "$POSTHASTE_KEY"', **cls.environment)
        cls.key = told.splitlines()[-1]

    def client(self, service):
        return emulated.client(service, self.environment)

    def functions(self):
        """The functions of the stack, by their names in the template."""
        resources = self.client("cloudformation").describe_stack_resources(StackName=STACK)["StackResources"]
        return {
            one["LogicalResourceId"]: self.client("lambda").get_function_configuration(
                FunctionName=one["PhysicalResourceId"]
            )
            for one in resources if one["ResourceType"] == "AWS::Lambda::Function"
        }

    def variables(self, function):
        return self.functions()[function]["Environment"]["Variables"]

    def test_what_is_installed_is_what_was_tested(self):
        lines = (ROOT / "tests" / "requirements" / "sam.in").read_text().splitlines()
        wanted = [line for line in lines if not line.startswith("#")]
        self.assertEqual((self.checkout.path / "pip").read_text().split(), ["install", *wanted])

    def test_all_functions_are_there(self):
        self.assertEqual(len(self.functions()), 7)

    def test_the_digest_of_the_key_is_all_that_a_function_is_given(self):
        self.assertEqual(len(self.key), 64)
        digest = hashlib.sha256(self.key.encode()).hexdigest()
        for name, function in self.functions().items():
            variables = function["Environment"]["Variables"]
            self.assertEqual(variables.get("ADMIN_KEY_SHA256"), digest if name == "ManageFunction" else None)
            self.assertNotIn(self.key, str(function))

    def test_a_level_of_alarms_is_chosen_and_left_again(self):
        template = stack.read()
        for level in ("none", "essential", "all"):
            given = {**stack.defaults(template), "Alarms": level}
            count = len(stack.Stack(template, given).of("AWS::CloudWatch::Alarm"))
            self.checkout.run(f"sam deploy --parameter-overrides Alarms={level}", **self.environment)
            with self.subTest(level=level):
                self.assertEqual((len(self.alarms()), len(self.alarms_of_the_dashboard())), (count, count))

    def test_labels_of_the_dashboard_are_filled_in_by_cloudwatch(self):
        """A label such as `dropped ${PROP('Dim.reason')}` has to get there as it is."""
        metrics = [
            metric[-1] for properties in self.widgets() for metric in properties.get("metrics", [])
            if isinstance(metric[-1], dict)
        ]
        labels = [metric["label"] for metric in metrics if "PROP" in metric["label"] or "$" in metric["label"]]
        variable = re.compile(r"[a-z -]*\$\{PROP\('Dim\.(reason|resource|tier|function|topic)'\)\}")
        self.assertEqual(len(labels), 10)
        self.assertEqual([label for label in labels if not variable.fullmatch(label)], [])

    def test_the_pager_rings_while_an_essential_alarm_is_on(self):
        # The emulator's CloudFormation knows no composite alarms, and its CloudWatch does.
        cloudwatch = self.client("cloudwatch")
        resources = self.client("cloudformation").describe_stack_resources(StackName=STACK)["StackResources"]
        names = {one["LogicalResourceId"]: one["PhysicalResourceId"] for one in resources}
        arns = {one["AlarmName"]: one["AlarmArn"] for one in self.alarms()}
        rule = re.sub(r"(\w+)\.Arn", lambda found: arns[names[found[1]]], rule_of_the_pager())
        cloudwatch.put_composite_alarm(AlarmName="pager", AlarmRule=rule)

        def pager_after(alarm, state):
            cloudwatch.set_alarm_state(AlarmName=names[alarm], StateValue=state, StateReason="a test")
            found = cloudwatch.describe_alarms(AlarmNames=["pager"], AlarmTypes=["CompositeAlarm"])
            return found["CompositeAlarms"][0]["StateValue"]

        self.assertEqual(pager_after("RedriveAlarm", "ALARM"), "OK")
        self.assertEqual(pager_after("ManageUrlErrorsAlarm", "ALARM"), "ALARM")
        self.assertEqual(pager_after("WakeSilentAlarm", "ALARM"), "ALARM")
        self.assertEqual(pager_after("ManageUrlErrorsAlarm", "OK"), "ALARM")
        self.assertEqual(pager_after("WakeSilentAlarm", "OK"), "OK")

    def alarms(self):
        pages = self.client("cloudwatch").get_paginator("describe_alarms").paginate(AlarmNamePrefix=STACK)
        return [alarm for page in pages for alarm in page["MetricAlarms"]]

    def alarms_of_the_dashboard(self):
        return [arn for properties in self.widgets() for arn in properties.get("alarms", [])]

    def widgets(self):
        """What the dashboard shows, widget by widget."""
        cloudwatch = self.client("cloudwatch")
        [one] = cloudwatch.list_dashboards(DashboardNamePrefix=STACK)["DashboardEntries"]
        body = cloudwatch.get_dashboard(DashboardName=one["DashboardName"])["DashboardBody"]
        return [widget["properties"] for widget in json.loads(body)["widgets"]]

    def test_later_deployments_keep_what_they_do_not_name(self):
        before = self.variables("ManageFunction")
        self.checkout.run("sam deploy --parameter-overrides PublishMemory=512", **self.environment)
        after = self.functions()
        self.assertEqual(after["ManageFunction"]["Environment"]["Variables"], before)
        self.assertEqual(after["PublishFunction"]["MemorySize"], 512)
        # The code is another, so that there is something to deploy.
        for program in self.checkout.path.glob(".aws-sam/build/*/bootstrap"):
            program.write_text(program.read_text() + "# another\n")
        self.checkout.run("sam deploy", **self.environment)
        after = self.functions()
        self.assertEqual(after["ManageFunction"]["Environment"]["Variables"], before)
        self.assertEqual(after["PublishFunction"]["MemorySize"], 512)

    def test_samconfig_has_no_environment_that_is_not_tried_here(self):
        # The way onto an emulator that delivers is infra/emulator/up, which tests/aws/deployed tries.
        written = tomllib.loads((ROOT / "samconfig.toml").read_text())
        self.assertEqual(written.keys(), {"version", "default"})

    def test_nothing_is_written_where_git_would_see_it(self):
        for name in ("samconfig.toml", "template.yaml"):
            self.assertEqual((self.checkout.path / name).read_bytes(), (ROOT / name).read_bytes())


def rule_of_the_pager():
    template = stack.read()
    given = {**stack.defaults(template), "PagingTopicArn": stack.TEXTS["PagingTopicArn"]}
    [pager] = stack.Stack(template, given).of("AWS::CloudWatch::CompositeAlarm").values()
    return pager["AlarmRule"]


if __name__ == "__main__":
    unittest.main()
