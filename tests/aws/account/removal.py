"""Removes everything that has the name of a trial, also what a trial left that was cut."""

import re

from botocore.exceptions import BotoCoreError, ClientError

import stacks

# The names of trials. Nothing with another name is ever touched: `posthaste` alone is somebody's production.
NAME = re.compile(r"posthaste-trial-[0-9a-f]{6}")

# How many objects S3 deletes in one request.
OBJECTS_MAX = 1_000

# KMS deletes no key sooner, and does not bill one that waits for it.
KEY_DAYS = 7


class Removal:
    """Everything of one trial. What cannot be removed is said, and the rest is removed all the same."""

    def __init__(self, cloud, deadline, name):
        if not NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no trial: its name would be posthaste-trial- and six hexadecimal digits")
        self.cloud, self.deadline, self.name = cloud, deadline, name

    def run(self):
        """Removes, and returns what is left, with the reason."""
        troubles = []
        for remove in (self._stacks, self._queues, self._buckets, self._log_groups, self._keys, self._policies):
            try:
                remove()
            except (BotoCoreError, ClientError, AssertionError) as error:
                troubles.append(f"{remove.__name__.strip('_')}: {error}")
        return troubles + [f"{one} is left" for one in self.left()]

    def left(self):
        """What there is of the trial."""
        keys = [] if not self._live_key() else [f"the alias {self.alias}"]
        stacks_left = [one.name for one in self.stacks()]
        return [*stacks_left, *self.queues(), *self.buckets(), *self.log_groups(), *keys, *self.policies()]

    def is_of_trial(self, name):
        return name == self.name or name.startswith(f"{self.name}-")

    # Stacks.

    def stacks(self):
        """Its stacks, each by its id."""
        listed = self.cloud.all("cloudformation", "describe_stacks", "Stacks")
        return [self._stack(one) for one in listed
                if self.is_of_trial(one["StackName"]) and one["StackStatus"] != "DELETE_COMPLETE"]

    def _stack(self, described):
        stack = stacks.Stack(self.cloud, self.deadline, described["StackName"])
        stack.id = described["StackId"]
        return stack

    def _stacks(self):
        found = self.stacks()
        for stack in found:
            stack.begin_to_delete()
        for stack in found:
            stack.wait_until_deleted()

    # Queues.

    def queues(self):
        """The URLs of its queues."""
        urls = self.cloud.all("sqs", "list_queues", "QueueUrls", QueueNamePrefix=f"{self.name}-")
        return [one for one in urls if one.rsplit("/", 1)[1].startswith(f"{self.name}-")]

    def _queues(self):
        for url in self.queues():
            try:
                self.cloud.client("sqs").delete_queue(QueueUrl=url)
            except self.cloud.client("sqs").exceptions.QueueDoesNotExist:
                continue
        # SQS lists a queue for a while after it was deleted.
        self.deadline.until_removed(lambda: not self.queues(), "the end of the queues", 180)

    # Buckets.

    def buckets(self):
        """The names of its buckets."""
        listed = self.cloud.client("s3").list_buckets()["Buckets"]
        return [one["Name"] for one in listed if self.is_of_trial(one["Name"])]

    def _buckets(self):
        for bucket in self.buckets():
            self._empty(bucket)
            self.cloud.client("s3").delete_bucket(Bucket=bucket)

    def _empty(self, bucket):
        """Deletes all versions of all objects, and the markers of deleted ones."""
        s3 = self.cloud.client("s3")
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket, MaxKeys=OBJECTS_MAX):
            found = page.get("Versions", []) + page.get("DeleteMarkers", [])
            objects = [{"Key": one["Key"], "VersionId": one["VersionId"]} for one in found]
            if objects:
                answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": objects, "Quiet": True})
                if errors := answer.get("Errors"):
                    raise AssertionError(f"{bucket}: {errors[0]['Key']} cannot be deleted: {errors[0]['Message']}")

    # Log groups, which a stack leaves that was asked to.

    def log_groups(self):
        groups = self.cloud.all(
            "logs", "describe_log_groups", "logGroups", logGroupNamePrefix=f"/aws/lambda/{self.name}"
        )
        names = [one["logGroupName"] for one in groups]
        return [one for one in names if self.is_of_trial(one.removeprefix("/aws/lambda/").split("/", 1)[0])]

    def _log_groups(self):
        for name in self.log_groups():
            self.cloud.client("logs").delete_log_group(logGroupName=name)

    # The key, which is found by its alias.

    @property
    def alias(self):
        return f"alias/{self.name}"

    def _live_key(self):
        """The id of its key, unless it waits for its deletion."""
        aliases = self.cloud.all("kms", "list_aliases", "Aliases")
        return next((one.get("TargetKeyId") for one in aliases if one["AliasName"] == self.alias), None)

    def _keys(self):
        kms = self.cloud.client("kms")
        if key := self._live_key():
            # The alias goes last: by it the key is found.
            if kms.describe_key(KeyId=key)["KeyMetadata"]["KeyState"] != "PendingDeletion":
                kms.schedule_key_deletion(KeyId=key, PendingWindowInDays=KEY_DAYS)
            kms.delete_alias(AliasName=self.alias)

    # The managed policy that bounded the roles.

    def policies(self):
        listed = self.cloud.all("iam", "list_policies", "Policies", Scope="Local", PathPrefix=f"/{self.name}/")
        return [one["Arn"] for one in listed]

    def _policies(self):
        for arn in self.policies():
            self.cloud.client("iam").delete_policy(PolicyArn=arn)
