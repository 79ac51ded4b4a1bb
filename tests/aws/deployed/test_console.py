"""The console behind the URL of manage: an operator signs in, reads every page, and signs out."""

import html
import http.client
import re
import urllib.parse

import waiting
from case import Case

# A page that is larger is slow to load on a phone.
PAGE_BYTES_MAX = 100_000

# What a page says in a sentence where `serve` has a figure.
ABSENT = {
    "": "on AWS no process sees all deliveries",
    "/pressure": "on AWS no process sees all deliveries",
    "/kept": "not counted here: on AWS the metrics",
}

PAGES = (
    *ABSENT,
    "/failing",
    "/topics",
    "/topics/{topic}",
    "/topics/{topic}/subscriptions/all",
    "/topics/{topic}/subscriptions/all/edit",
    "/events?topic={topic}",
    "/search?q=all",
    "/dead-letters",
    "/dead-letters/list?topic={topic}&subscription=all",
    "/told",
    "/work",
    "/replays",
    "/audit",
    "/sessions",
    "/words",
)


class Console(Case):
    def setUp(self):
        super().setUp()
        self.apply()
        # A browser would keep them under the console's path; the emulator has a path of its own before it.
        self.cookies = {}

    def page(self, path, fields=None):
        """The status and the text of a page, asked for with the cookies of those before."""
        url = urllib.parse.urlsplit(self.stack.manage_url + path)
        connection = http.client.HTTPConnection(url.netloc, timeout=30)
        headers = {"cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        body = urllib.parse.urlencode(fields) if fields else None
        target = f"{url.path}?{url.query}" if url.query else url.path
        connection.request("POST" if fields else "GET", target, body, headers)
        answer = connection.getresponse()
        for cookie in answer.headers.get_all("set-cookie") or []:
            name, value = cookie.split(";")[0].split("=", 1)
            self.cookies[name] = value
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def sign_in(self):
        form = self.form(self.page("/console/sign-in")[1])
        self.assertEqual(self.page("/console/sign-in", {"form": form, "key": self.stack.key})[0], 303)

    def form(self, text):
        """The token of the forms of a page."""
        return re.search(r'name="form" value="([^"]+)"', text)[1]

    def test_every_page_is_small_and_says_what_there_is_not(self):
        self.sign_in()
        for place in PAGES:
            with self.subTest(place):
                status, text = self.page("/console" + place.format(topic=self.topic))
                self.assertEqual(status, 200, text)
                self.assertLess(len(text.encode()), PAGE_BYTES_MAX)
                self.assertIn(ABSENT.get(place, ""), html.unescape(re.sub("<[^>]+>", "", text)))

    def test_a_copied_cookie_ends_with_the_sign_out(self):
        self.sign_in()
        status, text = self.page("/console")
        self.assertEqual(status, 200)
        copied = dict(self.cookies)
        self.assertEqual(self.page("/console/sign-out", {"form": self.form(text)})[0], 303)
        self.cookies = copied
        # Another instance may know the list of open sessions as it was some seconds ago.
        waiting.until(lambda: self.page("/console")[0] == 303, "the copied session has ended")

    def test_an_operator_signs_in_and_finds_the_topic(self):
        self.assertEqual(self.page("/console/topics")[0], 303)
        status, text = self.page("/console/sign-in")
        self.assertEqual(status, 200)
        form = re.search(r'name="form" value="([^"]+)"', text)[1]
        self.assertEqual(self.page("/console/sign-in", {"form": form, "key": "x" * 20})[0], 403)
        self.assertEqual(self.page("/console/sign-in", {"form": form, "key": self.stack.key})[0], 303)
        status, text = self.page("/console/topics")
        self.assertEqual(status, 200)
        self.assertIn(f'href="/console/topics/{self.topic}"', text)
