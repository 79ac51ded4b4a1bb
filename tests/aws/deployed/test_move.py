"""An installation moves from `posthaste serve` to AWS and back, by the commands of the page about it."""

import json
import os
import pathlib
import re
import subprocess
import tempfile

import serving
import waiting
from case import Case, cloud_event, request
from installation import KEY, Installation
from stack import ROOT

PAGE = ROOT / "docs" / "src" / "operating" / "moving.md"

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

AT_ONCE = {"delay": "PT0S"}

# The second try comes a second after the first has failed, and the first may take a minute.
SOON = {"schedule": ["PT1S"], "waitFloors": {"default": "PT0S"}}
PATIENT = {"timeout": "PT1M"}


class Move(Case):
    def test_topics_move_with_their_secrets_and_what_waits_is_drained(self):
        [topics, _] = blocks()
        with self.serve() as old:
            self.declare(old)
            key = old.posthaste("topics", "keys", "orders")["key1"]
            self.sink.answer(self.path, 500)
            self.sink.hold(self.path)
            self.publish(old.url, key, "waits")
            [first] = self.sink.take(self.path)
            new = self.installation("moved-topics")
            run(topics, old, new)
            # What waits goes out from where it was accepted, as the same request.
            self.sink.release(self.path)
            [second] = self.sink.take(self.path)
            told = [(one.headers["webhook-id"], one.headers["aeg-delivery-count"]) for one in (first, second)]
            self.assertEqual(told, [(told[0][0], "0"), (told[0][0], "1")])
            # Producers and receivers notice nothing.
            self.publish(new.publish_url, key, "after")
            [after] = self.sink.take(self.path)
            self.assertEqual(json.loads(after.body)["id"], "after")
            self.verify(after, SECRET)
        with self.serve() as back:
            run(topics, new, back)
            self.assertEqual(back.posthaste("topics", "keys", "orders")["key1"], key)
            self.publish(back.url, key, "back")
            [received] = self.sink.take(self.path)
            self.verify(received, SECRET)
        self.assertEqual(self.sink.left(self.path), 0)
        new.stack.delete()

    def test_dead_letters_move_and_are_replayed_with_their_ids(self):
        [_, letters] = blocks()
        new = self.installation("moved-letters")
        with self.serve() as old:
            self.declare(old)
            given_up = self.give_up(old, "1")
            run(letters, old, new)
        self.declare(new)
        self.replay(new)
        [again] = self.sink.take(self.path)
        told = again.headers["webhook-id"], again.headers["posthaste-replayed"]
        self.assertEqual(told, (given_up, "true"))
        self.verify(again, SECRET)
        waiting.until(lambda: not new.letters(), "no dead letter that is not resolved")
        given_up = self.give_up(new, "2")
        with self.serve() as back:
            said = run(letters, new, back)
            self.assertIn("put in 2 dead letters of 2 objects, 1 of them resolved", said)
            self.declare(back)
            [left] = back.letters()
            self.assertEqual(left["id"], "2")
            # wake sees it within a minute.
            self.replay(back)
            [again] = self.sink.take(self.path)
            self.assertEqual(again.headers["webhook-id"], given_up)
        self.assertEqual(self.sink.left(self.path), 0)
        new.stack.delete()

    def serve(self):
        return Embedded(os.environ["POSTHASTE_BIN"])

    def installation(self, name):
        return Cloud(Installation(name))

    def declare(self, side):
        """The topic with its subscription, as a user declares it."""
        settings = {
            "endpoint": {"url": self.sink.url(self.path), **PATIENT}, "deadLetter": AT_ONCE,
            "retryPolicy": SOON, "signing": {"secrets": [SECRET]},
        }
        declared = {"topics": {"orders": {"subscriptions": {"all": settings}}}}
        side.posthaste("apply", "--file", "-", text=json.dumps(declared))

    def publish(self, url, key, identity):
        sent = {"aeg-sas-key": key, "content-type": "application/cloudevents+json"}
        body = json.dumps(cloud_event(identity)).encode()
        answer = request("POST", f"{url}/topics/orders/events", sent, body)
        self.assertEqual(answer.status, 200, answer)

    def give_up(self, side, identity):
        """Publishes an event that its endpoint refuses for good, and answers its `webhook-id`."""
        self.sink.answer(self.path, 400)
        key = side.posthaste("topics", "keys", "orders")["key1"]
        self.publish(side.publish_url, key, identity)
        [refused] = self.sink.take(self.path)
        waiting.until(side.letters, "the dead letter")
        return refused.headers["webhook-id"]

    def replay(self, side):
        side.posthaste("dead-letters", "replay", "orders", "all", "--include-former")
        side.wake()


class Side:
    """An installation, as the page names it: by its URL and its key."""

    def __init__(self, url, publish_url, key):
        self.url, self.publish_url, self.key = url, publish_url, key

    def posthaste(self, *arguments, text=None):
        """Runs the program on it, and answers its JSON."""
        environment = {"PATH": os.environ["PATH"], "POSTHASTE_URL": self.url, "POSTHASTE_KEY": self.key}
        done = subprocess.run(
            [os.environ["POSTHASTE_BIN"], *arguments, "--json"], input=text, env=environment,
            capture_output=True, text=True,
        )
        if done.returncode != 0:
            raise AssertionError(f"{arguments} ended with {done.returncode}: {done.stderr}")
        return json.loads(done.stdout)

    def letters(self):
        """The dead letters that are not resolved."""
        return self.posthaste("dead-letters", "list", "orders", "all")["deadLetters"]


class Embedded(Side):
    """A server on a folder of its own. Use it in a `with`."""

    def __init__(self, program):
        self.server = serving.Server(program)
        super().__init__(self.server.url, self.server.url, self.server.key)

    def __enter__(self):
        return self

    def __exit__(self, *ended):
        self.server.__exit__(*ended)

    def wake(self):
        """It runs by itself."""


class Cloud(Side):
    """A stack of its own."""

    def __init__(self, stack):
        self.stack = stack
        super().__init__(stack.url("ManageUrl").rstrip("/"), stack.url("PublishUrl").rstrip("/"), KEY)

    def wake(self):
        self.stack.wake()


def blocks():
    """The blocks of the page that it says this test runs."""
    name = pathlib.Path(__file__).resolve().relative_to(ROOT)
    return re.findall(rf"<!-- run by: {name} -->\n```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)


def run(block, old, new):
    """Runs a block of the page as a reader does, and answers what it printed."""
    program = pathlib.Path(os.environ["POSTHASTE_BIN"])
    environment = {
        "PATH": f"{program.parent}:{os.environ['PATH']}", "OLD_URL": old.url, "OLD_KEY": old.key,
        "NEW_URL": new.url, "NEW_KEY": new.key,
    }
    with tempfile.TemporaryDirectory(prefix="posthaste-move-") as folder:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block], env=environment, cwd=folder, capture_output=True,
            text=True,
        )
    if done.returncode != 0:
        raise AssertionError(f"{block} ended with {done.returncode}: {done.stderr}")
    return done.stdout
