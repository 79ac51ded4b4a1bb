"""The console behind the URL of manage: an operator signs in and reads a page."""

import http.client
import re
import urllib.parse

from case import Case


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
        connection.request("POST" if fields else "GET", url.path, body, headers)
        answer = connection.getresponse()
        for cookie in answer.headers.get_all("set-cookie") or []:
            name, value = cookie.split(";")[0].split("=", 1)
            self.cookies[name] = value
        text = answer.read().decode()
        connection.close()
        return answer.status, text

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
