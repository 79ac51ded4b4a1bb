"""What `sam build` comes down to: the calls of cargo that SAM and cargo-lambda make for each program. A
setting that either of them overlooks is missing here, whatever the files say."""

import re
import shutil
import tomllib
import unittest

from samtranslator.yaml_helper import yaml_parse

from checkout import ROOT, Checkout

PROGRAMS = ["posthaste-delivery", "posthaste-log"]


def options(call, name):
    """The values of an option that may be repeated."""
    arguments = call["arguments"]
    return [value for option, value in zip(arguments, arguments[1:]) if option == name]


class Build(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.checkout = cls.enterClassContext(Checkout())
        cls.checkout.run("sam build")
        cls.builds = cls.checkout.calls("build")

    def test_each_program_is_built_once_for_the_processor_of_the_template(self):
        self.assertEqual(sorted(bin for call in self.builds for bin in options(call, "--bin")), PROGRAMS)
        self.assertEqual({target for call in self.builds for target in options(call, "--target")},
                         {"aarch64-unknown-linux-gnu"})
        for call in self.builds:
            self.assertIn("--release", call["arguments"])

    def test_another_processor_may_be_chosen(self):
        with Checkout() as checkout:
            checkout.run("sam build PublishFunction --parameter-overrides Architecture=x86_64")
            [call] = checkout.calls("build")
        self.assertEqual(options(call, "--target"), ["x86_64-unknown-linux-gnu"])

    def test_the_settings_are_those_of_the_profile_that_was_measured(self):
        profiles = tomllib.loads((ROOT / "Cargo.toml").read_text())["profile"]
        profile = {**profiles["dist"], **profiles["lambda"]}
        del profile["inherits"]
        for call in self.builds:
            given = tomllib.loads("\n".join(options(call, "--config")))
            self.assertEqual(given, {"profile": {"release": {**profile, "panic": "unwind"}}})

    def test_nothing_else_says_how_to_build(self):
        for call in self.builds:
            self.assertEqual([name for name in call["environment"] if name.startswith("CARGO_PROFILE_")], [])
            self.assertNotIn("RUSTFLAGS", call["environment"])

    def test_no_feature_is_switched_on(self):
        for call in self.checkout.calls("lambda") + self.builds:
            self.assertNotRegex(" ".join(call["arguments"]), "feature|-F")

    def test_line_of_the_page_about_traces_switches_its_feature_on(self):
        page = (ROOT / "docs/src/operating/traces.md").read_text()
        line = re.search(r"^features = .*$", page, re.MULTILINE)[0]
        with Checkout() as checkout:
            settings = checkout.path / "infra" / "lambda" / "CargoLambda.toml"
            settings.write_text(settings.read_text().replace("[build]\n", f"[build]\n{line}\n", 1))
            checkout.run("sam build DeliverFunction")
            [call] = checkout.calls("build")
        self.assertEqual(options(call, "--features"), ["otlp"])

    def test_every_function_gets_the_program_that_has_it(self):
        built = self.checkout.path / ".aws-sam" / "build"
        resources = yaml_parse((built / "template.yaml").read_text())["Resources"]
        kind = "AWS::Serverless::Function"
        functions = {name: one for name, one in resources.items() if one["Type"] == kind}
        self.assertEqual(len(functions), 7)
        for name, function in functions.items():
            program = function["Metadata"]["BuildProperties"]["Binary"]
            code = built / function["Properties"]["CodeUri"] / "bootstrap"
            # The stub of cargo writes the program's name at the end of the program.
            self.assertTrue(code.read_text().endswith(f"# {program}\n"), name)

    def test_git_ignores_what_sam_makes(self):
        self.assertTrue((self.checkout.path / ".aws-sam").is_dir())
        shutil.copy(ROOT / ".gitignore", self.checkout.path)
        self.assertEqual(self.checkout.run("git init --quiet && git status --porcelain -- .aws-sam"), "")

    def test_without_its_settings_cargo_lambda_would_make_programs_that_abort(self):
        # What these tests would see if the settings were not found: the stub tells it apart.
        with Checkout() as checkout:
            (checkout.path / "infra" / "lambda" / "CargoLambda.toml").unlink()
            checkout.run("sam build DeliverFunction")
            [call] = checkout.calls("build")
        self.assertIn('profile.release.panic="abort"', options(call, "--config"))


if __name__ == "__main__":
    unittest.main()
