"""The program behind `up`."""

import argparse
import hashlib
import pathlib
import secrets
import signal
import sys

from botocore.exceptions import BotoCoreError, ClientError

import deploy
import emulator
import folder
import package
import template

DESCRIPTION = """Starts ministack, an AWS emulator, on 127.0.0.1, and deploys this repository's template.yaml
to it, with the real function binaries. Prints lines that a shell can evaluate. `down` stops everything and
keeps nothing."""

# The parameter that only `up` gives: another digest would not fit the key that it prints.
ADMIN_KEY = "AdminKeySha256"


def arguments():
    parser = argparse.ArgumentParser(prog="infra/emulator/up", description=DESCRIPTION)
    folder.add_option(parser)
    parser.add_argument(
        "--port", type=port, default=4566, metavar="PORT",
        help="the emulator's port (default: 4566; 0: a free one)",
    )
    parser.add_argument("--stack", default="posthaste", help="the stack's name (default: posthaste)")
    parser.add_argument(
        "--profile", default="dev", help="cargo's profile (default: dev, the quickest to build)"
    )
    parser.add_argument(
        "--binaries",
        type=pathlib.Path,
        metavar="DIR",
        help="take the two programs from here instead of building them",
    )
    parser.add_argument(
        "--allow-endpoints", default="127.0.0.0/8", metavar="CIDRS",
        help="endpoints that may lie here, by plain http too (default: 127.0.0.0/8; empty for none)",
    )
    parser.add_argument(
        "--parameter", action="append", default=[], metavar="NAME=VALUE", type=parameter,
        help="a parameter of the template; repeatable",
    )
    return parser.parse_args()


NEXT_STEPS = """
next, in {repository}:
  cargo build --release --bin posthaste && export PATH="$PWD/target/release:$PATH"    # the command `posthaste`
  posthaste apply -f samples/orders.yaml                  # the topic `orders`; its endpoint is 127.0.0.1:9000
  posthaste publish orders --file samples/cloudevents/order-paid.json
  aws sqs list-queues --endpoint-url "$AWS_ENDPOINT_URL"  # for SQS, AWS CLI 1 ignores the variable"""


def port(text):
    if not (text.isdecimal() and int(text) < 65_536):
        raise argparse.ArgumentTypeError(f"{text!r} is no port: a number up to 65535, 0 for a free one")
    return int(text)


def parameter(text):
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    if name == ADMIN_KEY:
        raise argparse.ArgumentTypeError(
            f"{ADMIN_KEY} is the digest of the key that up makes and prints; leave it out"
        )
    if name not in (known := template.parameters()):
        raise argparse.ArgumentTypeError(
            f"{name!r} is no parameter of template.yaml; it has {', '.join(known)}"
        )
    return name, value


def tell(text):
    print(text, file=sys.stderr, flush=True)


def programs(options):
    """The programs, each of which runs on this machine."""
    if options.binaries:
        found = {name: options.binaries.resolve() / name for name in package.PROGRAMS}
    else:
        tell(f"building the functions (cargo, profile {options.profile})")
        found = package.build(options.profile)
    package.check(found)
    return found


def deployed(cloud, options, binaries):
    """Deploys, and says where everything is."""
    key = secrets.token_urlsafe(32)
    digest = hashlib.sha256(key.encode()).hexdigest()
    given = {ADMIN_KEY: digest, "AllowEndpoints": options.allow_endpoints}
    given |= dict(options.parameter)
    tell("uploading the functions")
    cloud.upload(binaries, given)
    tell(f"making the stack {options.stack}")
    cloud.create(given)
    stack = cloud.described()
    publish, manage = (cloud.reachable(stack, name) for name in ("Publish", "Manage"))
    # A topic's `endpoint` must be an address that works here.
    cloud.set_variable(stack["resources"]["ManageFunction"], "PUBLISH_URL", publish)
    environment = {
        "POSTHASTE_URL": manage, "POSTHASTE_KEY": key, "AWS_ENDPOINT_URL": cloud.url,
        "AWS_ACCESS_KEY_ID": emulator.ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": emulator.SECRET_KEY,
        "AWS_DEFAULT_REGION": emulator.REGION, "PUBLISH_URL": publish,
        "DEAD_LETTER_BUCKET": stack["outputs"]["DeadLetterBucketName"],
        "LOG_BUCKET": stack["outputs"]["LogBucketName"],
        "STATE_BUCKET": stack["outputs"]["StateBucketName"],
    }
    return {**stack, "publishUrl": publish, "manageUrl": manage, "environment": environment}


def show(stack, log):
    """What people want to know on standard error, which `eval` leaves alone, and what shells want on standard
    output."""
    tell(f"publish URL          {stack['publishUrl']}")
    tell(f"manage URL           {stack['manageUrl']}")
    tell(f"state bucket         s3://{stack['outputs']['StateBucketName']}")
    tell(f"log bucket           s3://{stack['outputs']['LogBucketName']}")
    tell(f"dead-letter bucket   s3://{stack['outputs']['DeadLetterBucketName']}")
    tell(f"the emulator's log   {log}")
    tell(NEXT_STEPS.format(repository=pathlib.Path(__file__).resolve().parents[2]))
    print(folder.exports(stack), end="")


def main():
    options = arguments()
    options.folder = options.folder.resolve()
    machine = emulator.Emulator(options.folder)
    running = machine.running()
    if running:
        raise emulator.Trouble(
            f"already running on port {running['port']} (in {options.folder}); stop it with down"
        )
    # Asked before a build of minutes, and again when the emulator starts.
    emulator.free_port(options.port)
    binaries = programs(options)
    # An interrupt, a SIGTERM or any other trouble: nothing half made stays behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder.narrow(options.folder)
    try:
        machine.start(options.port)
        tell(f"the emulator runs on {machine.url}")
        stack = deployed(deploy.Cloud(machine.url, options.stack), options, binaries)
        folder.write(options.folder, stack)
    except BaseException:
        machine.stop()
        if machine.log.exists():
            tell(f"the emulator's log   {machine.log}")
        raise
    show(stack, machine.log)


if __name__ == "__main__":
    try:
        main()
    except (emulator.Trouble, OSError, BotoCoreError, ClientError) as trouble:
        sys.exit(f"up: {trouble}")
    except KeyboardInterrupt:
        sys.exit("up: interrupted; nothing that it started is left")
