"""An account of AWS, or an emulator in its place: clients whose requests are counted, and URLs of functions as this
machine reaches them."""

import urllib.parse

import boto3
import botocore.config

# A fault of the network must not end a trial that has made things.
CONFIG = botocore.config.Config(retries={"mode": "standard", "max_attempts": 5})


class Cloud:
    """Clients of one account and region. `endpoint_url` is that of an emulator, or None."""

    def __init__(self, endpoint_url, region, ledger):
        self.endpoint_url = endpoint_url
        self.session = boto3.Session(region_name=region)
        self.region = self.session.region_name
        self.ledger = ledger
        self.clients = {}

    @property
    def is_emulator(self):
        return self.endpoint_url is not None

    def client(self, service):
        """A client, made once. Each request that it sends, also one that repeats another, is counted."""
        if service not in self.clients:
            client = self.session.client(service, endpoint_url=self.endpoint_url, config=CONFIG)
            client.meta.events.register("before-send.*", self._count)
            self.clients[service] = client
        return self.clients[service]

    def _count(self, event_name, **_):
        _, service, operation = event_name.split(".")
        self.ledger.request(service, operation)

    def all(self, service, operation, member, **arguments):
        """What all pages of a list have under a name."""
        pages = self.client(service).get_paginator(operation).paginate(**arguments)
        return [one for page in pages for one in page.get(member, [])]

    def account(self):
        """The number of the account."""
        return self.client("sts").get_caller_identity()["Account"]

    def url(self, function_url):
        """The URL of a function as this machine reaches it: the names of an emulator resolve nowhere."""
        if not self.is_emulator:
            return function_url.rstrip("/")
        host = urllib.parse.urlsplit(function_url).hostname.split(".", 1)[0]
        return f"{self.endpoint_url}/_aws/lambda-url/{host}"

    def object_url(self, bucket, key):
        """The URL by which CloudFormation reads a template in a bucket."""
        if self.is_emulator:
            return f"{self.endpoint_url}/{bucket}/{key}"
        suffix = "amazonaws.com.cn" if self.region.startswith("cn-") else "amazonaws.com"
        return f"https://{bucket}.s3.{self.region}.{suffix}/{key}"

    def make_bucket(self, name):
        """Makes a bucket of this region. S3 refuses to be told of its first region."""
        where = {} if self.region == "us-east-1" else {
            "CreateBucketConfiguration": {"LocationConstraint": self.region}
        }
        self.client("s3").create_bucket(Bucket=name, **where)

    def keys(self, bucket, prefix=""):
        """The keys in a bucket."""
        return [one["Key"] for one in self.all("s3", "list_objects_v2", "Contents", Bucket=bucket, Prefix=prefix)]

    def read(self, bucket, key):
        """The bytes of an object."""
        return self.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
