"""A stack beside the one that all tests share, on the same emulator and of the same template and programs:
made, deleted, and made again by the test that needs it."""

import hashlib
import json
import os
import subprocess

import case
import waiting

KEY = "a-key-of-an-installation-that-goes"

CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]


# Where infra/emulator/up puts the template that it deploys.
CODE_BUCKET, TEMPLATE = "posthaste-code", "template.json"


class Refused(AssertionError):
    """The stack was not made. Its text is what CloudFormation says of the resources that failed."""


class Installation:
    """One stack. Its name may be that of one that was, its template another beside the usual one."""

    def __init__(self, name, template=TEMPLATE, **parameters):
        self.name, self.shared = name, case.STACK
        self.cloudformation = self.shared.client("cloudformation")
        digest = hashlib.sha256(KEY.encode()).hexdigest()
        given = {"AdminKeySha256": digest, "AllowEndpoints": "127.0.0.0/8", **parameters}
        self.cloudformation.create_stack(
            StackName=name, Capabilities=CAPABILITIES,
            TemplateURL=f"{self.shared.environment['AWS_ENDPOINT_URL']}/{CODE_BUCKET}/{template}",
            Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in given.items()],
        )
        if self.ended() != "CREATE_COMPLETE":
            raise Refused("\n".join(self.failures()))
        [stack] = self.cloudformation.describe_stacks(StackName=name)["Stacks"]
        self.id = stack["StackId"]
        self.outputs = {one["OutputKey"]: one["OutputValue"] for one in stack["Outputs"]}
        resources = self.cloudformation.describe_stack_resources(StackName=name)["StackResources"]
        self.resources = {one["LogicalResourceId"]: one["PhysicalResourceId"] for one in resources}

    def ended(self):
        """The status of the stack, once nothing is under way."""
        def status():
            [stack] = self.cloudformation.describe_stacks(StackName=self.name)["Stacks"]
            return None if stack["StackStatus"].endswith("IN_PROGRESS") else stack["StackStatus"]

        return waiting.until(status, f"the stack {self.name}")

    def failures(self):
        events = self.cloudformation.describe_stack_events(StackName=self.name)["StackEvents"]
        failed = (one for one in events if one["ResourceStatus"].endswith("FAILED"))
        return [f"{one['LogicalResourceId']}: {one.get('ResourceStatusReason')}" for one in failed]

    def update(self, template=None, **parameters):
        """Deploys again with these parameters, and with another template where one is named; all other
        parameters that it has keep their values."""
        [stack] = self.cloudformation.describe_stacks(StackName=self.name)["Stacks"]
        others = [one["ParameterKey"] for one in stack["Parameters"] if one["ParameterKey"] not in parameters]
        by = {"UsePreviousTemplate": True}
        if template:
            others = [one for one in others if one in self.parameters_of(template)]
            by = {"TemplateURL": f"{self.shared.environment['AWS_ENDPOINT_URL']}/{CODE_BUCKET}/{template}"}
        self.cloudformation.update_stack(
            StackName=self.name, **by, Capabilities=CAPABILITIES,
            Parameters=[{"ParameterKey": key, "UsePreviousValue": True} for key in others]
            + [{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
        )
        if self.ended() != "UPDATE_COMPLETE":
            raise Refused("\n".join(self.failures()))

    def parameters_of(self, template):
        """The names of a template's parameters."""
        return json.loads(self.shared.read(CODE_BUCKET, template))["Parameters"]

    def delete(self):
        """Deletes the stack as `sam delete` does, and answers the kinds of the resources that stay."""
        self.cloudformation.delete_stack(StackName=self.id)

        def is_gone():
            return any(
                (one["LogicalResourceId"], one["ResourceStatus"]) == (self.name, "DELETE_COMPLETE")
                for one in all_events(self.cloudformation, self.id)
            )

        waiting.until(is_gone, f"the end of the stack {self.name}")
        return sorted(
            one["ResourceType"] for one in all_events(self.cloudformation, self.id)
            if one["ResourceStatus"] == "DELETE_SKIPPED"
        )

    def adoption(self):
        """What its output says to give the next stack."""
        return dict(one.split("=") for one in self.outputs["AdoptionParameters"].split())

    def url(self, name):
        """A function URL, as this machine reaches it."""
        host = self.outputs[name].split("://", 1)[1].split(".", 1)[0]
        return f"{self.shared.environment['AWS_ENDPOINT_URL']}/_aws/lambda-url/{host}"

    def posthaste(self, *arguments, text=None):
        """Runs the program on this stack, and answers its JSON."""
        url = self.url("ManageUrl")
        environment = {"PATH": os.environ["PATH"], "POSTHASTE_URL": url, "POSTHASTE_KEY": KEY}
        done = subprocess.run(
            [os.environ["POSTHASTE_BIN"], *arguments, "--json"], input=text, env=environment,
            capture_output=True, text=True,
        )
        if done.returncode != 0:
            raise AssertionError(f"{arguments} ended with {done.returncode}: {done.stderr}")
        return json.loads(done.stdout)

    def publish(self, topic, event):
        """Publishes an event, or a list of them, which must be acknowledged."""
        key = self.posthaste("topics", "keys", topic)["key1"]
        kind = case.CLOUD_EVENTS if isinstance(event, list) else case.CLOUD_EVENT
        sent = {"aeg-sas-key": key, "content-type": kind}
        url = f"{self.url('PublishUrl')}/topics/{topic}/events"
        answer = case.request("POST", url, sent, json.dumps(event).encode())
        if answer.status != 200:
            raise AssertionError(answer)

    def switch_deliver(self, enabled, queue=""):
        """Switches the event source mappings of deliver, or that of a queue by the end of its name."""
        functions = self.shared.client("lambda")
        for mapping in self.deliver_mappings():
            if mapping["EventSourceArn"].endswith(queue):
                functions.update_event_source_mapping(UUID=mapping["UUID"], Enabled=enabled)

    def deliver_mappings(self):
        """The event source mappings of deliver."""
        functions, name = self.shared.client("lambda"), self.resources["DeliverFunction"]
        return functions.list_event_source_mappings(FunctionName=name)["EventSourceMappings"]

    def wake(self):
        self.shared.client("lambda").invoke(FunctionName=self.resources["WakeFunction"], Payload=b"{}")

    def run_monitor(self):
        """Runs monitor once, and answers the text of its error, if it failed."""
        answer = self.shared.client("lambda").invoke(
            FunctionName=self.resources["MonitorFunction"], Payload=b"{}"
        )
        return answer["Payload"].read().decode() if "FunctionError" in answer else None

    def waiting_messages(self, queue="deliveries"):
        """How many messages a queue has, whoever holds them."""
        name = "ApproximateNumberOfMessages"
        names = [name, f"{name}NotVisible", f"{name}Delayed"]
        counts = self.queue_attributes(queue, names)
        return sum(int(count) for count in counts.values())

    def queue_attributes(self, queue, names=("All",)):
        """Attributes of a queue, by the end of its name."""
        sqs = self.shared.client("sqs")
        answer = sqs.get_queue_attributes(QueueUrl=self.queue_url(queue), AttributeNames=list(names))
        return answer.get("Attributes", {})

    def queue_url(self, queue):
        """The URL of a queue, by the end of its name, as a stack has it that adopted nothing."""
        return self.outputs["DeliveriesQueueUrl"].removesuffix("deliveries") + queue

    def send(self, queue, message):
        """Puts a message straight into a queue."""
        self.shared.client("sqs").send_message(QueueUrl=self.queue_url(queue), MessageBody=json.dumps(message))


def all_events(cloudformation, stack):
    """What happened to a stack, by its name or id, the newest first."""
    pages = cloudformation.get_paginator("describe_stack_events").paginate(StackName=stack)
    return [one for page in pages for one in page["StackEvents"]]
