"""Other people's checks of a template, each as a function that answers what it found wrong."""

import json
import os
import pathlib
import subprocess

from samtranslator.yaml_helper import yaml_parse

from stack import PSEUDO, ROOT

TOOLS = pathlib.Path(os.environ.get("POSTHASTE_TOOLS", ROOT / "target/tools"))

CHECKOV = pathlib.Path(__file__).resolve().parent / "checkov.yaml"

# Each takes a few seconds; one that asked the network for something would take longer than this.
SECS_MAX = 120

# Nothing here may reach AWS, or believe that it has an account there.
ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": os.environ.get("HOME", "/"),
    "AWS_DEFAULT_REGION": PSEUDO["AWS::Region"],
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "AWS_EC2_METADATA_DISABLED": "true",
    "SAM_CLI_TELEMETRY": "0",
}


def sam(template):
    """What `sam validate --lint` says, nothing if it is content."""
    return _complaints("sam/bin/sam", "validate", "--lint", "--template", template)


def cfn_lint(template):
    """What cfn-lint says, nothing if it is content."""
    return _complaints("cfn-lint/bin/cfn-lint", template)


def checkov(template):
    """What checkov says under the settings of checkov.yaml, nothing if it is content."""
    return _complaints("checkov/bin/checkov", "--config-file", CHECKOV, "--file", template)


def checkov_failures(template):
    """The ids of checkov's checks that fail if nothing is left out but what a resource itself says."""
    settings = [
        "--framework",
        "cloudformation",
        "--skip-download",
        "--quiet",
        "--compact",
        "--output",
        "json",
    ]
    done = _run("checkov/bin/checkov", *settings, "--file", template, stderr=subprocess.DEVNULL)
    found = json.loads(done.stdout)
    # A file that checkov cannot read passes all of no checks.
    assert found["summary"]["passed"] > 0, found["summary"]
    return {one["check_id"] for one in found["results"]["failed_checks"]}


def left_out():
    """The ids that checkov.yaml leaves out."""
    return set(yaml_parse(CHECKOV.read_text())["skip-check"])


def _complaints(*command):
    done = _run(*command, stderr=subprocess.STDOUT)
    return done.stdout if done.returncode else ""


def _run(program, *arguments, stderr):
    return subprocess.run(
        [str(TOOLS / program), *map(str, arguments)],
        cwd=ROOT,
        env=ENVIRONMENT,
        timeout=SECS_MAX,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        check=False,
    )
