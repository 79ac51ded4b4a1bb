"""The program behind `real`."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

from samtranslator.yaml_helper import yaml_parse

import emulated
import page
from checkout import ROOT

sys.path += [str(ROOT / "infra" / "emulator"), str(ROOT / "tests" / "aws" / "deployed")]

import case  # noqa: E402
import sink  # noqa: E402
import template  # noqa: E402

STACK = "posthaste"

# A build of both programs takes some ten minutes of two idle cores.
BUILD_SECS_MAX = 3600

# A start of Lambda reads the whole program, and deliver starts for every delivery.
DELIVERY, DELIVERY_BYTES_MAX = "posthaste-delivery", 11 * 1024 * 1024

# What the page says about another processor, and what an endpoint on this machine needs.
X86_64 = "Architecture=x86_64"
HERE = "AllowEndpoints=127.0.0.0/8"

PATH = "/hooks"


def commands():
    """The page's lines, for this processor and for an endpoint here: what comes first, build, deployment."""
    [lines] = page.blocks("aws.md", pathlib.Path(__file__).with_name("test_deploy.py"))
    before, last = lines.rstrip().rsplit("\n", 1)
    build, deploy = last.split(" && ")
    assert (build, deploy.split()[:2]) == ("sam build", ["sam", "deploy"]), last
    return before, f"{build} --parameter-overrides {X86_64}", f"{deploy} {X86_64} {HERE}"


def clone(folder):
    """A clean clone, whose template has the few differences that the emulator needs."""
    subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
    path = folder / "template.yaml"
    path.write_text(json.dumps(template.adapted(path=path, parameters={})))


def shell(lines, folder, environment):
    """Runs lines of shell as a user would: with the tools, and without what this process was told."""
    tools = pathlib.Path(os.environ["POSTHASTE_TOOLS"], "sam", "bin")
    stubs = folder.parent / "stubs"
    home = pathlib.Path.home()
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", lines], cwd=folder, stdin=subprocess.DEVNULL, check=True,
        timeout=BUILD_SECS_MAX,
        env={
            "PATH": f"{stubs}:{tools}:{os.environ['PATH']}", "HOME": str(folder.parent),
            "CARGO_HOME": os.environ.get("CARGO_HOME", str(home / ".cargo")),
            "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(home / ".rustup")),
            "SAM_CLI_TELEMETRY": "0", "STUB_PIP": str(folder.parent / "pip"), **environment,
        },
    )


def timed(what, work):
    began = time.monotonic()
    result = work()
    print(f"{what}: {time.monotonic() - began:.0f} s", flush=True)
    return result


def check_sizes(folder):
    """Prints the size of each program that was built, and of its zip. That of deliver stays small."""
    built = folder / ".aws-sam" / "build"
    resources = yaml_parse((built / "template.yaml").read_text())["Resources"].values()
    functions = [one for one in resources if one["Type"] == "AWS::Serverless::Function"]
    # Functions of one program have the same file.
    codes = {one["Metadata"]["BuildProperties"]["Binary"]: one["Properties"]["CodeUri"] for one in functions}
    for name, code in sorted(codes.items()):
        program, archive = built / code / "bootstrap", folder.parent / "program.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            packed.write(program, "bootstrap")
        megabytes = [path.stat().st_size / 1_000_000 for path in (program, archive)]
        print(f"{name}: {megabytes[0]:.1f} MB, its zip {megabytes[1]:.1f} MB", flush=True)
    delivery = (built / codes[DELIVERY] / "bootstrap").read_bytes()
    assert b"/parquet-" not in delivery, f"{DELIVERY} has the files of the delivery log"
    assert len(delivery) < DELIVERY_BYTES_MAX, len(delivery)


class Delivery(case.Case):
    """An event through the stack that was deployed. Not found by unittest: it has no test."""

    def check_signed(self, received, secret):
        self.verify(received, secret)


def deliver(environment, key):
    """Publishes an event to the stack's PublishUrl, and has it arrive with a valid signature."""
    url = environment["AWS_ENDPOINT_URL"]
    [stack] = emulated.client("cloudformation", environment).describe_stacks(StackName=STACK)["Stacks"]
    outputs = {one["OutputKey"]: one["OutputValue"] for one in stack["Outputs"]}

    def reachable(name):
        return f"{url}/_aws/lambda-url/{outputs[name].split('://', 1)[1].split('.', 1)[0]}"

    def posthaste(*arguments, text=None):
        manage = reachable("ManageUrl")
        told = {"PATH": os.environ["PATH"], "POSTHASTE_URL": manage, "POSTHASTE_KEY": key}
        command = [os.environ["POSTHASTE_BIN"], *arguments, "--json"]
        done = subprocess.run(command, input=text, env=told, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    with sink.Sink() as endpoint:
        subscription = {"endpoint": {"url": endpoint.url(PATH)}}
        declared = {"topics": {"orders": {"subscriptions": {"all": subscription}}}}
        applied = posthaste("apply", "--file", "-", text=json.dumps(declared))
        [secret] = [new["value"] for new in applied["new"] if new["kind"] == "signing secret"]
        publish_key = posthaste("topics", "keys", "orders")["key1"]
        sent = {"aeg-sas-key": publish_key, "content-type": case.CLOUD_EVENT}
        body = (ROOT / "samples" / "cloudevents" / "order-paid.json").read_bytes().strip()
        answer = case.request("POST", f"{reachable('PublishUrl')}/topics/orders/events", sent, body)
        assert answer.status == 200, answer
        [received] = endpoint.take(PATH)
        assert received.body == body, received.body
        Delivery().check_signed(received, secret)


def main():
    with tempfile.TemporaryDirectory(prefix="posthaste-sam-real-") as name:
        base = pathlib.Path(name)
        folder, stubs = base / "posthaste", base / "stubs"
        stubs.mkdir()
        # The tools are installed already. Everything else is the real one.
        for name in ("pip", "python3"):
            shutil.copy(pathlib.Path(__file__).with_name("stubs") / name, stubs)
        timed("git clone", lambda: clone(folder))
        before, build, deploy = commands()
        timed("sam build", lambda: shell(build, folder, {}))
        check_sizes(folder)
        with emulated.environment() as environment:
            remember = f'printf %s "$POSTHASTE_KEY" > {base}/key'
            timed("sam deploy", lambda: shell(f"{before}\n{deploy}\n{remember}", folder, environment))
            timed("publish to delivery", lambda: deliver(environment, (base / "key").read_text()))
    print("delivered, with a valid signature")


if __name__ == "__main__":
    main()
