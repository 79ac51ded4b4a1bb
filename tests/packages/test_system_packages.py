"""The Debian and the RPM package on a machine: installed, started as its unit says, upgraded while events wait,
and removed, after which the data folder is still there."""

import http.server
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile
import threading
import unittest

import release

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "packaging"))

import system_packages  # noqa: E402
from build import version  # noqa: E402

UNIT = "/usr/lib/systemd/system/posthaste.service"
DATA = "/var/lib/posthaste"

EVENT = '{"specversion":"1.0","id":"E-1","source":"/shop","type":"order.paid","data":{}}'

# The version of the package, and the later one that it is upgraded to.
VERSION = version()
LATER = "{}.{}.{}".format(*VERSION.split(".")[:2], int(VERSION.split(".")[2]) + 1)


class Endpoint:
    """A webhook that answers 503 until it is well, and says when it got an event."""

    def __init__(self):
        self.is_well = False
        self.refused, self.taken = threading.Event(), threading.Event()
        endpoint = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(200 if endpoint.is_well else 503)
                self.end_headers()
                (endpoint.taken if endpoint.is_well else endpoint.refused).set()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/"

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Service:
    """The line that the unit runs, as its user and with its variables. Use it in a `with`."""

    def __init__(self, machine):
        unit = machine.run(f"cat {UNIT}").splitlines()
        values = [line.partition("=") for line in unit if "=" in line and not line.startswith("#")]
        given = {}
        for name, _, value in values:
            given.setdefault(name, []).append(value)
        [user], [line] = given["User"], given["ExecStart"]
        variables = [*given["Environment"], "POSTHASTE_LISTEN=127.0.0.1:0", "ALLOW_ENDPOINTS=127.0.0.0/8"]
        # systemd makes the folder of StateDirectory.
        machine.run(f"install --directory --mode=700 --owner={user} --group={user} {DATA}")
        words = ["env", "--ignore-environment", *variables, *line.split()]
        script = f"exec setpriv --reuid={user} --regid={user} --clear-groups {shlex.join(words)}"
        self.process = subprocess.Popen(
            machine.command(script), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        self.machine, self.user = machine, user
        self.url = self.wait_for("listening")["url"]

    def wait_for(self, message):
        lines = []
        for line in self.process.stderr:
            lines.append(line)
            entry = json.loads(line) if line.startswith("{") else {}
            if entry.get("message", "").startswith(message):
                threading.Thread(target=lambda: list(self.process.stderr), daemon=True).start()
                return entry
        raise AssertionError("the service ended:\n" + "".join(lines))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        code = self.process.wait(timeout=release.PATIENCE_SECS)
        self.process.stderr.close()
        if code != 0:
            raise AssertionError(f"SIGTERM ended the service with {code}")

    def posthaste(self, words, text=""):
        """A command of an operator, who is the service's user."""
        command = f"posthaste --url {self.url} --data-dir {DATA} {words}"
        return self.machine.run(
            f"printf %s {shlex.quote(text)} | setpriv --reuid={self.user} --regid={self.user} --clear-groups {command}"
        )


class Installed:
    """What holds for both kinds of packages."""

    def later(self):
        """The package of a later version, with the same files."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        root = folder / "root"
        subprocess.run(["dpkg-deb", "--extract", release.file(".deb"), root], check=True)
        return system_packages.make(self.kind, root, release.MACHINE, LATER, folder)

    def test_installed_upgraded_while_an_event_waits_and_removed(self):
        machine = self.enterContext(release.Machine())
        endpoint = Endpoint()
        self.addCleanup(endpoint.close)
        machine.run(self.install.format(machine.take(release.file(f".{self.kind}"))))
        with Service(machine) as service:
            settings = {"topics": {"orders": {"subscriptions": {"shop": {
                "endpoint": {"url": endpoint.url}, "retryPolicy": {"schedule": ["PT1S"]},
            }}}}}
            service.posthaste("apply --file -", json.dumps(settings))
            service.posthaste("publish orders --file -", EVENT)
            self.assertTrue(endpoint.refused.wait(release.PATIENCE_SECS))
        machine.run("echo POSTHASTE_LOG=warn >> /etc/posthaste/posthaste.env")
        machine.run(self.install.format(machine.take(self.later())))
        self.assertIn(LATER, machine.run(self.version))
        # What an operator wrote stays.
        self.assertIn("POSTHASTE_LOG=warn", machine.run("cat /etc/posthaste/posthaste.env"))
        endpoint.is_well = True
        with Service(machine):
            self.assertTrue(endpoint.taken.wait(release.PATIENCE_SECS))
        machine.run(self.back.format(machine.take(release.file(f".{self.kind}"))))
        self.assertIn(VERSION, machine.run(self.version))
        machine.run(self.remove)
        self.assertEqual(machine.run("command -v posthaste || echo gone"), "gone\n")
        self.assertIn("admin.key", machine.run(f"ls {DATA}"))

    def test_manual_and_completions_are_where_shells_look(self):
        machine = self.enterContext(release.Machine())
        machine.run(self.install.format(machine.take(release.file(f".{self.kind}"))))
        self.assertIn("--drain-timeout", machine.run("zcat /usr/share/man/man1/posthaste-serve.1.gz | tr -d '\\\\'"))
        completed = machine.run(
            "bash -c '. /usr/share/bash-completion/completions/posthaste; "
            "COMP_WORDS=(posthaste serv); COMP_CWORD=1; _posthaste posthaste serv posthaste; echo \"${COMPREPLY[@]}\"'"
        )
        self.assertEqual(completed.split(), ["serve"])

    def test_unit_is_read_by_systemd_and_gives_the_service_little(self):
        machine = self.enterContext(release.Machine())
        machine.run(self.install.format(machine.take(release.file(f".{self.kind}"))))
        said = machine.run(f"SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no {UNIT} 2>&1")
        self.assertEqual([line for line in said.splitlines() if "posthaste" in line], [])
        # Of 10.0: what is above 2.0 has systemd say "exposed".
        machine.run(f"systemd-analyze security --offline=true --threshold=20 {UNIT}")


class Debian(Installed, unittest.TestCase):
    kind = "deb"
    install = "dpkg --install {} 2>&1"
    back = install
    version = "dpkg-query --show posthaste"
    remove = "dpkg --remove posthaste; dpkg --purge posthaste"


class Rpm(Installed, unittest.TestCase):
    kind = "rpm"
    # Debian's machine has no list of what is installed by RPM, so nothing that is needed would be found.
    install = "rpm --upgrade --nodeps {}"
    back = "rpm --upgrade --nodeps --oldpackage {}"
    version = "rpm --query posthaste"
    remove = "rpm --erase posthaste"


if __name__ == "__main__":
    unittest.main()
