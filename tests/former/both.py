"""A former release and this one on one stack: `both.py FORMER`, where FORMER is a checkout of the former release with
its programs built in `target/debug`. Started by `just former`.

The former release is deployed and filled. Then CloudFormation updates the stack: its buckets and roles first, and monitor,
which makes the queue of slow deliveries; then its other functions one after the other, with a `deliver` of each beside
the other. Then that queue is drained, and all of it goes back, the roles before the functions as well, and forth again.
Each event that was accepted by either has to arrive, or to be a dead letter."""

import base64
import hashlib
import json
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "aws" / "deployed"), str(ROOT / "infra" / "emulator")]

import deploy  # noqa: E402
import package  # noqa: E402
import template  # noqa: E402
from endpoints import Endpoints  # noqa: E402
from leave import statuses  # noqa: E402
from leave_on_aws import Woken, waiting  # noqa: E402
from patience import DELAYED_SECS, until  # noqa: E402
from scenario import OTHERS, PAUSED, SUBSCRIPTIONS, TOPIC, Scenario  # noqa: E402
from stack import Stack  # noqa: E402

# The functions, in the order in which they are updated here. CloudFormation has monitor first too: all others wait for
# what it makes.
FUNCTIONS = ("monitor", "deliver", "publish", "wake", "manage", "deadletter", "record")

# What functions of this release need beside themselves, in a template that has it not.
NEEDED = {"Resources": ("DeliveriesSlow",), "Parameters": None, "Conditions": None, "Mappings": None}

# The queue of slow deliveries, by the end of its name.
SLOW = "deliveries-slow"

# The bucket with this release's code. The former release's is where its `up` put it.
OWN_CODE = "posthaste-code-own"

# The program that deliver is in.
DELIVERY = "posthaste-delivery"

# Subscriptions whose events become dead letters. Those of `buried` are replayed, and arrive …
LETTERS = ("gone",)

# … and those that are not looked at: resolved, not published, or a dead letter only after half an hour.
DEAD = (*LETTERS, "letters", "resolved", "expiring", "deleted", "again")

# How many more events of a subscription each step publishes.
MORE = 3


class Former(Stack):
    """The stack as the former release deploys it."""

    def __init__(self, checkout):
        super().__init__()
        self.checkout = checkout

    def binaries(self):
        return str(self.checkout / "target" / "debug")

    def upload(self, folder):
        """This release's code, beside the former one's."""
        s3 = self.client("s3")
        s3.create_bucket(Bucket=OWN_CODE)
        for name in package.PROGRAMS:
            s3.put_object(Bucket=OWN_CODE, Key=f"{name}.zip", Body=packed(folder / name))

    def update(self, names):
        """The stack by this release's template, but only these functions are this release's."""
        made = template.local(OWN_CODE, {})
        self._update(made, template.local(deploy.CODE_BUCKET, {}, self.checkout / "template.yaml"), names)

    def update_back(self, names):
        """The stack by the former release's template, but these functions are still this release's."""
        made = template.local(deploy.CODE_BUCKET, {}, self.checkout / "template.yaml")
        others = [name for name in FUNCTIONS if name not in names]
        self._update(made, template.local(OWN_CODE, {}), others)

    def drain(self):
        """The step before the way back, by this release's template."""
        self._update(template.local(OWN_CODE, {}), {"Resources": {}}, FUNCTIONS, DeliverSlow="drain")
        sqs = self.client("sqs")
        url = self.outputs["DeliveriesQueueUrl"].removesuffix("deliveries") + SLOW
        until(lambda: not waiting(sqs, url, 0), "an empty queue of slow deliveries")

    def _update(self, made, other, names, **given):
        """The stack by a template, with all functions but these as another one has them."""
        own = {f"{name.capitalize()}Function" for name in names}
        for name, function in template.of_type(other, "AWS::Serverless::Function").items():
            if name not in own:
                made["Resources"][name] = function
                complete(made, other)
        cloudformation = self.client("cloudformation")
        [stack] = cloudformation.describe_stacks()["Stacks"]
        known = {one["ParameterKey"] for one in stack["Parameters"]}
        self.client("s3").put_object(Bucket=OWN_CODE, Key="template.json", Body=json.dumps(made).encode())
        cloudformation.update_stack(
            StackName=stack["StackName"],
            TemplateURL=f"{self.environment['AWS_ENDPOINT_URL']}/{OWN_CODE}/template.json",
            Capabilities=deploy.CAPABILITIES,
            Parameters=[
                {"ParameterKey": name, "UsePreviousValue": True}
                for name in made["Parameters"] if name in known and name not in given
            ] + [{"ParameterKey": name, "ParameterValue": value} for name, value in given.items()],
        )
        self._wait(stack["StackName"])
        # `up` set it, beside the template.
        deploy.Cloud(self.environment["AWS_ENDPOINT_URL"], stack["StackName"]).set_variable(
            self.function("manage"), "PUBLISH_URL", self.publish_url
        )
        self._check(made)

    def _check(self, made):
        """Each function has the code that the template names."""
        for name, function in template.of_type(made, "AWS::Serverless::Function").items():
            code = function["Properties"]["CodeUri"]
            there = self.client("lambda").get_function_configuration(FunctionName=self.described["resources"][name])
            wanted = base64.b64encode(hashlib.sha256(self.read(code["Bucket"], code["Key"])).digest()).decode()
            if there["CodeSha256"] != wanted:
                raise AssertionError(f"{name} does not have {code}")

    def _wait(self, name):
        cloudformation = self.client("cloudformation")

        def status():
            return cloudformation.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"]

        until(lambda: not status().endswith("IN_PROGRESS"), "the update of the stack")
        if status() != "UPDATE_COMPLETE":
            events = cloudformation.describe_stack_events(StackName=name)["StackEvents"]
            raise AssertionError([one for one in events if one["ResourceStatus"].endswith("FAILED")])

    def add_deliver(self, folder):
        """Another deliver beside the one of the stack, of this release, on the same queue."""
        functions = self.client("lambda")
        own = functions.get_function_configuration(FunctionName=self.function("deliver"))
        name = "deliver-beside"
        functions.create_function(
            FunctionName=name, Runtime=own["Runtime"], Role=own["Role"], Handler=own["Handler"],
            Code={"ZipFile": packed(folder / DELIVERY)}, Timeout=own["Timeout"], MemorySize=own["MemorySize"],
            Environment=own["Environment"],
        )
        [mapping] = functions.list_event_source_mappings(FunctionName=self.function("deliver"))["EventSourceMappings"]
        self.beside = functions.create_event_source_mapping(
            EventSourceArn=mapping["EventSourceArn"], FunctionName=name, BatchSize=mapping["BatchSize"],
            FunctionResponseTypes=mapping.get("FunctionResponseTypes", []),
        )["UUID"]

    def remove_deliver(self):
        """Takes the other deliver away."""
        self.client("lambda").delete_event_source_mapping(UUID=self.beside)


def complete(made, other):
    """Puts into a template what functions of the other one refer to, and what it does not have itself."""
    for kind, names in NEEDED.items():
        for name, one in other.get(kind, {}).items():
            if names is None or name in names:
                made.setdefault(kind, {}).setdefault(name, one)


def packed(program):
    """The bytes of a program's archive."""
    with tempfile.NamedTemporaryFile(suffix=".zip") as archive:
        package.pack(program, archive.name)
        return pathlib.Path(archive.name).read_bytes()


def publish_more(made, step):
    """Events for subscriptions in every state, of this step."""
    for name in ("arrived", "delayed", "parked", "held", "batched"):
        ids = [f"{name}-{step}-{number}" for number in range(MORE)]
        made.publish_ids(name, ids)
    # The functions of this step deliver them, and no later ones.
    ids = {f"arrived-{step}-{number}" for number in range(MORE)}
    until(lambda: ids <= made.endpoints.arrived("arrived"), f"the events of the step {step}")


def look_back(made):
    """What this release parked and held is sent by the former one alone."""
    made.endpoints.answer("parked", 200)
    made.posthaste("subscriptions", "force", TOPIC, "parked")
    ids = set(made.accepted["parked"])
    until(lambda: ids <= made.endpoints.arrived("parked"), "what was parked, after the way back")


def end(made):
    """Lets everything go, and waits until each event is where it belongs."""
    for name in SUBSCRIPTIONS:
        made.endpoints.answer(name, 200)
    for name in (*PAUSED, *OTHERS):
        if name not in ("deleted", "again"):
            made.posthaste("subscriptions", "resume", name if name in OTHERS else TOPIC, name)
    for name in ("parked", "delayed", "batched", "dressed", "down"):
        made.posthaste("subscriptions", "force", TOPIC, name)
    for name, ids in made.accepted.items():
        if name not in DEAD:
            wait_for(made, name, set(ids))
    for name in LETTERS:
        count = len(made.accepted[name])
        until(lambda name=name, count=count: len(made.letters(name)) >= count, f"the letters of {name}")


def wait_for(made, name, ids):
    """Waits until all events of a subscription have arrived, and names those that have not."""
    try:
        until(lambda: ids <= made.endpoints.arrived(name), f"all events of {name}", DELAYED_SECS)
    except AssertionError as error:
        raise AssertionError(f"{error}: {sorted(ids - made.endpoints.arrived(name))}") from error


def main():
    checkout, own = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(os.environ["POSTHASTE_FUNCTIONS"])
    former = checkout / "target" / "debug"
    with Former(checkout) as stack, Endpoints(statuses()) as endpoints, Woken(stack):
        made = Scenario(str(former / "posthaste"), stack.environment, endpoints)
        made.make()
        made.fill()
        stack.upload(own)
        stack.update(FUNCTIONS[:1])
        stack.add_deliver(own)
        publish_more(made, "beside")
        for number in range(2, len(FUNCTIONS) + 1):
            stack.update(FUNCTIONS[:number])
            publish_more(made, f"update-{number}")
        made.program = os.environ["POSTHASTE_BIN"]
        publish_more(made, "new")
        stack.remove_deliver()
        stack.drain()
        for number in range(len(FUNCTIONS) + 1):
            stack.update_back(FUNCTIONS[number:])
            publish_more(made, f"back-{number}")
        made.program = str(former / "posthaste")
        look_back(made)
        made.program = os.environ["POSTHASTE_BIN"]
        stack.update(FUNCTIONS)
        end(made)
        # What this release's manage alone writes, with a right that the former release's role has not.
        if not stack.objects(stack.state_bucket, "audit/"):
            raise AssertionError("manage of this release never ran, or not with its role")
    counts = {name: len(ids) for name, ids in made.accepted.items()}
    letters = sum(counts[name] for name in LETTERS)
    arrived = sum(count for name, count in counts.items() if name not in DEAD)
    print(f"of both releases, {arrived} events arrived and {letters} are dead letters")


if __name__ == "__main__":
    main()
