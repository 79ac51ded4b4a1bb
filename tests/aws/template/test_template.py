"""template.yaml by SAM's, CloudFormation's and checkov's rules and by ours; and each of these shown a
template that is wrong. Run by `check`."""

import json
import pathlib
import re
import tempfile
import unittest
import unittest.mock

import breaks
import breaks_of_options
import rules
import stack
import tools

# Run with the tests of this file.
from test_deployer import Deployer  # noqa: F401
from test_former import Former  # noqa: F401


AWS_PAGE = stack.ROOT / "docs/src/operating/aws.md"

BREAKS = {**breaks.BREAKS, **breaks_of_options.BREAKS}

VARIANTS = (
    stack.defaults,
    stack.an_api_alone,
    stack.everything,
    stack.everything_behind_function_urls,
    stack.a_key_that_only_decrypts,
    lambda template: {**stack.everything(template), "Alarms": "all"},
    lambda template: {**stack.defaults(template), "Alarms": "none"},
)


def problems(template):
    """What our rules say of each variant, with each level of alarms: pairs of a rule and a sentence."""
    for given in VARIANTS:
        yield from rules.broken(stack.Stack(template, given(template)))


def broken(*ways):
    template = stack.read()
    for break_it in ways:
        break_it(template)
    return template


class OurRules(unittest.TestCase):
    def test_the_template_keeps_every_rule(self):
        self.assertEqual(list(problems(stack.read())), [])

    def test_each_rule_names_what_breaks_it(self):
        for name, ways in BREAKS.items():
            for number, break_it in enumerate(ways):
                with self.subTest(rule=name, way=number):
                    # The first variant that shows it will do.
                    self.assertIn(name, (rule for rule, _ in problems(broken(break_it))))

    def test_the_variants_have_each_level_of_alarms(self):
        template = stack.read()
        self.assertEqual(stack.Stack(template, stack.defaults(template)).parameters["Alarms"], "all")
        self.assertEqual(stack.everything(template)["Alarms"], "essential")

    def test_the_page_says_what_alarms_and_metrics_cost(self):
        template = stack.read()
        for level in rules.alarms.LEVELS:
            for paging in ("", stack.TEXTS["PagingTopicArn"]) if level != "none" else ("",):
                given = {**stack.defaults(template), "Alarms": level, "PagingTopicArn": paging}
                row = rules.alarms.row_of_the_page(stack.Stack(template, given))
                self.assertTrue(row in AWS_PAGE.read_text().splitlines(), row)

    def test_the_dashboard_of_each_partition_is_on_its_own_console(self):
        hosts = {
            "aws": "console.aws.amazon.com",
            "aws-cn": "console.amazonaws.cn",
            "aws-us-gov": "console.amazonaws-us-gov.com",
            "aws-eusc": "console.amazonaws-eusc.eu",
        }
        template = stack.read()
        for partition, host in hosts.items():
            with unittest.mock.patch.dict(stack.PSEUDO, {"AWS::Partition": partition, "AWS::Region": "here-1"}):
                made = stack.Stack(template, stack.defaults(template))
                manage = made.resources["ManageFunction"]["Properties"]
            url = manage["Environment"]["Variables"]["DASHBOARD_URL"]
            self.assertTrue(url.startswith(f"https://here-1.{host}/cloudwatch/home?region=here-1#dash"), url)

    def test_each_rule_can_be_broken(self):
        # The one that reads two files beside the template is broken below.
        self.assertEqual(
            sorted(rules.RULES), sorted([*BREAKS, "what-sam-builds-is-what-was-measured"])
        )

    def test_a_build_that_would_abort_on_a_panic_is_named(self):
        original = rules.program.CARGO_LAMBDA
        self.addCleanup(setattr, rules.program, "CARGO_LAMBDA", original)
        for right, wrong in (('"unwind"', '"abort"'), ("disable_optimizations = true", "")):
            with self.subTest(right=right), tempfile.TemporaryDirectory() as folder:
                rules.program.CARGO_LAMBDA = pathlib.Path(folder, "CargoLambda.toml")
                rules.program.CARGO_LAMBDA.write_text(original.read_text().replace(right, wrong))
                self.assertEqual(set(dict(problems(stack.read()))), {"what-sam-builds-is-what-was-measured"})


class OtherPeoplesRules(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def written(self, template):
        path = self.folder / "template.json"
        path.write_text(json.dumps(template))
        return path

    def transformed(self, template):
        return self.written(stack.Stack(template, stack.defaults(template)).transformed)

    def test_sam_is_content(self):
        self.assertEqual(tools.sam(stack.TEMPLATE), "")

    def test_cfn_lint_is_content(self):
        self.assertEqual(tools.cfn_lint(stack.TEMPLATE), "")

    def test_cfn_lint_is_content_with_what_sam_makes_of_it(self):
        self.assertEqual(tools.cfn_lint(self.transformed(stack.read())), "")

    def test_checkov_is_content(self):
        self.assertEqual(tools.checkov(stack.TEMPLATE), "")

    def test_what_checkov_is_told_to_leave_out_is_all_that_it_would_say(self):
        self.assertEqual(tools.checkov_failures(self.transformed(stack.read())), tools.left_out())

    def test_each_id_that_is_left_out_has_its_reason(self):
        lines = tools.CHECKOV.read_text().splitlines()
        reasons = {
            line.split()[1]: above for above, line in zip(lines, lines[1:]) if re.match(r"\s+- CKV_", line)
        }
        self.assertEqual(reasons.keys(), tools.left_out())
        for name, above in reasons.items():
            self.assertRegex(above, r"^  # .*\.", name)

    def test_sam_and_cfn_lint_name_a_property_that_there_is_not(self):
        path = self.written(broken(breaks.property_of("DeliveriesQueue", "VisibilityTimout", 730)))
        self.assertIn("VisibilityTimout", tools.sam(path))
        self.assertIn("VisibilityTimout", tools.cfn_lint(path))

    def test_checkov_names_a_bucket_that_is_open(self):
        path = self.written(broken(breaks.without("StateBucket", "PublicAccessBlockConfiguration")))
        self.assertIn("CKV_AWS_53", tools.checkov(path))
        self.assertIn("CKV_AWS_53", tools.checkov_failures(path))


if __name__ == "__main__":
    unittest.main()
