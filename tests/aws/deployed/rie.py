"""AWS's own Runtime Interface Emulator around one function: what Lambda itself runs between an event
and a program. It takes one invocation at a time."""

import http.client
import json
import os
import platform
import signal
import socket
import subprocess
import tempfile

import waiting

INVOKE = "/2015-03-31/functions/function/invocations"

# The names that AWS gives the two builds of it.
PROCESSORS = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Rie:
    """A function of a program on a port. Use it in a `with`."""

    def __init__(self, program, function, environment, timeout_secs):
        emulator = os.path.join(
            os.environ["POSTHASTE_RIE"], f"aws-lambda-rie-{PROCESSORS[platform.machine()]}"
        )
        self.port = free_port()
        self.log = tempfile.TemporaryFile()
        addresses = [
            "--runtime-interface-emulator-address", f"127.0.0.1:{self.port}",
            "--runtime-api-address", f"127.0.0.1:{free_port()}",
        ]
        # Nothing of this process's environment, as on Lambda. A group of its own, so that the function ends
        # with it.
        self.process = subprocess.Popen(
            [emulator, *addresses, os.path.join(os.environ["POSTHASTE_FUNCTIONS"], program), function],
            env={"PATH": os.defpath, "AWS_LAMBDA_FUNCTION_TIMEOUT": str(timeout_secs), **environment},
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True,
        )

    def __enter__(self):
        try:
            waiting.until(self._listens, "the Runtime Interface Emulator")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.log.close()

    def invoke(self, event):
        """Sends an event and answers what the function answered."""
        return json.loads(self.invoke_raw(event))

    def invoke_raw(self, event):
        """The same without a look at it."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=waiting.PATIENCE_SECS)
        try:
            connection.request("POST", INVOKE, json.dumps(event))
            return connection.getresponse().read()
        finally:
            connection.close()

    def logged(self):
        """What emulator and function wrote."""
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def _listens(self):
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", self.port)) == 0
