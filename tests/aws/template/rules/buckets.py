"""Buckets, and how long what is in them stays."""

import re

from rules import rule
from rules.queues import encrypting_key, outlives, refuses_plain_text
from stack import ROOT


@rule
def buckets_are_private(stack):
    for name, bucket in stack.of("AWS::S3::Bucket").items():
        blocks = bucket.get("PublicAccessBlockConfiguration", {})
        shut = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
        if not all(blocks.get(one) is True for one in shut):
            yield f"{name}: public access is not blocked in all four ways"
        ownership = bucket.get("OwnershipControls", {}).get("Rules")
        if ownership != [{"ObjectOwnership": "BucketOwnerEnforced"}]:
            yield f"{name}: access lists of objects are not switched off"


@rule
def buckets_are_encrypted(stack):
    expected = {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    if key := encrypting_key(stack):
        by_key = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}
        # Without a bucket key each object is a request to KMS.
        expected = {"ServerSideEncryptionByDefault": by_key, "BucketKeyEnabled": True}
    for name, bucket in stack.of("AWS::S3::Bucket").items():
        found = bucket.get("BucketEncryption", {}).get("ServerSideEncryptionConfiguration", [])
        if found != [expected]:
            yield f"{name}: encrypted as {found}, expected {expected}"


@rule
def buckets_take_tls_only(stack):
    policies = stack.of("AWS::S3::BucketPolicy").values()
    for name in stack.of("AWS::S3::Bucket"):
        arns = f"{name}.Arn", f"{name}.Arn/*"
        if not any(
            policy["Bucket"] == name and refuses_plain_text(policy, "s3:*", *arns) for policy in policies
        ):
            yield f"{name}: may be reached without TLS"


# The claim writes into it, and what was deleted stays there as former versions. So it cannot be deleted even
# right after it was made, and a deployment that tried would end in ROLLBACK_FAILED.
NEVER_EMPTY = {"StateBucket"}


@rule
def buckets_outlive_the_stack(stack):
    for name, one in stack.resources.items():
        deletion = "Retain" if name in NEVER_EMPTY else "RetainExceptOnCreate"
        if one["Type"] == "AWS::S3::Bucket" and not outlives(one, deletion):
            yield f"{name}: would go with the stack, or keep a deployment that failed from being undone"


@rule
def state_has_former_versions_for_a_time(stack):
    bucket = stack.of("AWS::S3::Bucket")["StateBucket"]
    if bucket.get("VersioningConfiguration") != {"Status": "Enabled"}:
        yield "StateBucket: not versioned"
    days = int(stack.parameters["StateVersionDays"])
    if not any(
        one.get("NoncurrentVersionExpiration") == {"NoncurrentDays": days} for one in everywhere(bucket)
    ):
        yield f"StateBucket: former versions are not deleted after {days} days"


@rule
def the_log_keeps_no_former_versions(stack):
    """Payloads are erased by the log's retention. A version would outlive it."""
    status = stack.of("AWS::S3::Bucket")["LogBucket"].get("VersioningConfiguration")
    if status is not None:
        yield f"LogBucket: its versioning is {status}"


@rule
def objects_go_when_nothing_needs_them(stack):
    limits = (ROOT / "shared/core/src/model/limits.rs").read_text()
    payload_hours = int(re.search(r"PAYLOAD_KEPT: Duration = Duration::from_hours\((\d+)\)", limits)[1])
    kept_hours = int(re.search(r"IDEMPOTENCY_KEPT: Duration = Duration::from_hours\((\d+)\)", limits)[1])
    replay_days = int(re.search(r"REPLAY_KEPT: Duration = Duration::from_hours\((\d+) \* 24\)", limits)[1])
    late_hours = int(re.search(r"LATE_NOTE_KEPT: Duration = Duration::from_hours\((\d+)\)", limits)[1])
    ahead_days = int(re.search(r"SCHEDULED_AHEAD_MAX: Duration = Duration::from_hours\((\d+) \* 24\)", limits)[1])
    audit_days = int(re.search(r"AUDIT_KEPT: Duration = Duration::from_hours\((\d+) \* 24\)", limits)[1])
    retention = int(stack.parameters["DeadLetterRetentionDays"])
    log_days = int(stack.parameters["DeliveryLogRetentionDays"])
    expected = {
        "StateBucket": {
            "payloads/": payload_hours // 24, "idempotency/": kept_hours // 24, "drain/": 1, "refused/": 1,
            "rates/": 1, "slots/": 1, "late/": late_hours // 24, "replays/": replay_days, "claims/": replay_days,
            "audit/": audit_days, "scheduled/": ahead_days + payload_hours // 24 + 1, "cancelled/": ahead_days + payload_hours // 24 + 1,
        },
        "DeadLetterBucket": {None: retention} if retention else {},
        "LogBucket": {None: log_days},
    }
    for name, bucket in stack.of("AWS::S3::Bucket").items():
        found = {
            one.get("Prefix"): one["ExpirationInDays"]
            for one in lifecycle(bucket)
            if "ExpirationInDays" in one
        }
        if found != expected[name]:
            yield f"{name}: objects expire after days as {found}, expected {expected[name]}"


@rule
def uploads_that_were_given_up_go(stack):
    for name, bucket in stack.of("AWS::S3::Bucket").items():
        if not any("AbortIncompleteMultipartUpload" in one for one in everywhere(bucket)):
            yield f"{name}: parts of broken uploads stay for ever"


def lifecycle(bucket):
    """The rules that are switched on."""
    return [
        one for one in bucket.get("LifecycleConfiguration", {}).get("Rules", []) if one["Status"] == "Enabled"
    ]


def everywhere(bucket):
    """Those that are for all objects."""
    return [one for one in lifecycle(bucket) if "Prefix" not in one]
