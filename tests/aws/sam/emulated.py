"""The emulator onto which this folder deploys, and what a shell and a test know it by."""

import contextlib
import sys
import tempfile

import boto3

from checkout import ROOT

sys.path.append(str(ROOT / "infra" / "emulator"))

import emulator  # noqa: E402


@contextlib.contextmanager
def environment():
    """Starts an emulator, and gives the variables by which tools of AWS find it."""
    with tempfile.TemporaryDirectory(prefix="posthaste-sam-emulator-") as folder:
        machine = emulator.Emulator(folder)
        try:
            machine.start(0)
            yield {
                "AWS_ENDPOINT_URL": machine.url, "AWS_ACCESS_KEY_ID": emulator.ACCESS_KEY,
                "AWS_SECRET_ACCESS_KEY": emulator.SECRET_KEY, "AWS_DEFAULT_REGION": emulator.REGION,
            }
        finally:
            machine.stop()


def client(service, told):
    """A client of the emulator with these variables."""
    session = boto3.Session(emulator.ACCESS_KEY, emulator.SECRET_KEY, region_name=emulator.REGION)
    return session.client(service, endpoint_url=told["AWS_ENDPOINT_URL"])
