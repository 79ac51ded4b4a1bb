"""Stacks of CloudFormation: made, updated, deleted, and waited for."""

import json

from botocore.exceptions import ClientError

CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]

# AWS takes about four minutes for each of them. This is for a bad day, and still within the trial's time.
CREATE_SECS, UPDATE_SECS, DELETE_SECS = 15 * 60, 10 * 60, 12 * 60


class Failed(AssertionError):
    """CloudFormation did not do it. The text is what it says of the resources that failed."""


class Stack:
    """A stack by its name, which may be there or not."""

    def __init__(self, cloud, deadline, name):
        self.cloud, self.deadline, self.name = cloud, deadline, name
        self.id = None

    @property
    def client(self):
        return self.cloud.client("cloudformation")

    def begin_to_make(self, parameters, **source):
        """Begins to make it, of a `TemplateURL` or a `TemplateBody`."""
        made = self.client.create_stack(
            StackName=self.name, Capabilities=CAPABILITIES, Parameters=listed(parameters), **source
        )
        self.id = made["StackId"]

    def make(self, parameters, **source):
        self.begin_to_make(parameters, **source)
        self.wait("CREATE_COMPLETE", CREATE_SECS)

    def update(self, parameters):
        """Deploys it again with some parameters, and the others as they are."""
        [stack] = self.client.describe_stacks(StackName=self.name)["Stacks"]
        others = [one["ParameterKey"] for one in stack["Parameters"] if one["ParameterKey"] not in parameters]
        self.client.update_stack(
            StackName=self.name, UsePreviousTemplate=True, Capabilities=CAPABILITIES,
            Parameters=listed(parameters) + [{"ParameterKey": name, "UsePreviousValue": True} for name in others],
        )
        self.wait("UPDATE_COMPLETE", UPDATE_SECS)

    def wait(self, wanted, secs):
        """Waits until nothing is under way, and the stack is as it should be."""
        ended = self.deadline.until(self._settled, f"the stack {self.name}", secs)
        if ended != wanted:
            raise Failed(f"the stack {self.name} ended as {ended}: " + "; ".join(self.failures()))

    def status(self):
        """Its status, or None if there is no such stack."""
        try:
            [stack] = self.client.describe_stacks(StackName=self.id or self.name)["Stacks"]
        except ClientError as error:
            if "does not exist" in str(error):
                return None
            raise
        return None if stack["StackStatus"] == "DELETE_COMPLETE" else stack["StackStatus"]

    def _settled(self):
        status = self.status()
        return None if status and status.endswith("IN_PROGRESS") else status or "gone"

    def begin_to_delete(self):
        """Begins to delete it, once no update of it is under way: CloudFormation refuses that."""
        def is_free():
            return not (self.status() or "").startswith(("UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS"))

        self.deadline.until_removed(is_free, f"the update of the stack {self.name}", UPDATE_SECS)
        self.client.delete_stack(StackName=self.id or self.name)

    def wait_until_deleted(self):
        """Waits for its end, also when the time for checks is up."""
        def is_gone():
            status = self.status()
            if status == "DELETE_FAILED":
                raise Failed(f"the stack {self.name} cannot be deleted: " + "; ".join(self.failures()))
            return status is None

        self.deadline.until_removed(is_gone, f"the end of the stack {self.name}", DELETE_SECS)

    def delete(self):
        self.begin_to_delete()
        self.wait_until_deleted()

    def events(self):
        """What happened to it, the newest first, also when it is deleted."""
        return self.cloud.all("cloudformation", "describe_stack_events", "StackEvents", StackName=self.id or self.name)

    def failures(self):
        """What CloudFormation says of resources that failed, but for those that it gave up because of another."""
        failed = [one for one in self.events() if one["ResourceStatus"].endswith("FAILED")]
        reasons = [f"{one['LogicalResourceId']}: {one.get('ResourceStatusReason', 'no reason')}" for one in failed]
        return [one for one in reasons if "cancelled" not in one]

    def kept(self):
        """The kinds of the resources that stayed when it was deleted."""
        return sorted(one["ResourceType"] for one in self.events() if one["ResourceStatus"] == "DELETE_SKIPPED")

    def outputs(self):
        [stack] = self.client.describe_stacks(StackName=self.name)["Stacks"]
        return {one["OutputKey"]: one["OutputValue"] for one in stack.get("Outputs", [])}

    def resources(self):
        """The names of its resources on AWS, by their names in the template."""
        found = self.cloud.all(
            "cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=self.name
        )
        return {one["LogicalResourceId"]: one.get("PhysicalResourceId") for one in found}


def listed(parameters):
    return [{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()]


def body(template):
    """A template as CloudFormation takes it in a request."""
    return {"TemplateBody": json.dumps(template)}
