"""The reference names what the code has, and nothing else: metrics, lines of the log, keys of stored objects,
queues, problems and exit codes. What the code has is found in its text, so no program has to be built."""

import re
import tomllib
import unittest

import pages

REFERENCE = pages.BOOK / "reference"

# A unit test at the end of a file, and comments on lines of their own.
TESTS = re.compile(r"\n#\[cfg\((?:all\()?test\b[^\n]*\]\n(?:#\[[^\n]*\]\n)*mod \w+ \{.*", re.DOTALL)
COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
TEST_FILES = re.compile(r"/(tests|testkit|benches)/|/(tests|testing)\.rs$")

LOG_MACRO = re.compile(r"\b(error|warn|info|debug|trace)!\s*\(")
METRIC_MACRO = re.compile(r"\b(?:counter|gauge|histogram)!\s*\(")
METRIC_NAME = re.compile(r'"([A-Z]\w+)"')
TEXT = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
WRAP = re.compile(r"\\\n\s*")

# Less than this means that a regular expression no longer finds what it should.
METRICS_MIN, LINES_MIN, WARNINGS_MIN = 20, 200, 150
KEYS_MIN, QUEUES_MIN, PROBLEMS_MIN, UNTYPED_MIN, EXIT_CODES_MIN = 15, 3, 15, 5, 8


class Reference(unittest.TestCase):
    def test_metrics(self):
        """The table has what functions measure. A test beside it makes the page from it."""
        table = code_of(pages.ROOT / "shared/core/src/model/metric/table.rs")
        rows = re.findall(rf"\.measured(?:_in_serve)?(?:_as)?\({METRIC_NAME.pattern}\)", table)
        self.assertEqual(len(rows), len(set(rows)))
        self.compare(set(metrics()), set(rows), METRICS_MIN)

    def test_lines_of_the_log(self):
        found = set(log_lines())
        self.assertGreater(sum(level in ("ERROR", "WARN") for _, level, _ in found), WARNINGS_MIN)
        self.compare(found, set(documented_lines()), LINES_MIN)

    def test_fields_of_the_log(self):
        found, written = log_lines(), documented_lines()
        both = sorted(found.keys() & written.keys())
        self.assertEqual([(key, found[key], written[key]) for key in both if found[key] != written[key]], [])

    def test_keys_of_stored_objects(self):
        prefixes, keys = key_prefixes(), list(first_cells("stored-objects.md", "key", "version"))
        self.assertGreaterEqual(len(prefixes), KEYS_MIN)
        unnamed = [prefix for prefix in prefixes if not any(key.startswith(prefix) for key in keys)]
        self.assertEqual(unnamed, [])
        known = (*prefixes, "{TOPIC}/{SUBSCRIPTION}/")
        self.assertEqual([key for key in keys if not key.startswith(known)], [])

    def test_what_may_be_lost_is_said_of_every_key(self):
        state = [key for key in key_prefixes() if key not in ("MALFORMED/", "resolved/")]
        rows = tables("stored-objects.md", "key", "if it is lost or damaged")
        self.compare(set(state), {key for row in rows for key in codes(row[0])}, KEYS_MIN)

    def test_queues(self):
        text = code_of(pages.ROOT / "shared/ports/src/queue.rs")
        names = set(re.findall(r'Self::\w+ => "([a-z-]+)"', text))
        self.compare(names, set(first_cells("stored-objects.md", "queue")), QUEUES_MIN)

    def test_problems_with_a_type(self):
        kinds, status = problem_kinds(), problem_statuses()
        found = {
            (f"urn:posthaste:problem:{name}", title, status[kind])
            for kind, (name, title) in kinds.items()
        }
        rows = tables("problems.md", "type", "title", "status")
        written = {(codes(row[0])[0], row[1], int(row[2])) for row in rows}
        self.compare(found, written, PROBLEMS_MIN)

    def test_problems_without_a_type(self):
        typed, status = problem_kinds(), problem_statuses()
        found = {code for kind, code in status.items() if kind not in typed}
        written = {int(row[1]) for row in tables("problems.md", "title", "status")}
        self.compare(found, written, UNTYPED_MIN)

    def test_exit_codes(self):
        text = (pages.ROOT / "infra/cli/src/cli.rs").read_text()
        help_text = re.search(r'const EXIT_CODES: &str = "\\\n(.*?)";', text, re.DOTALL)[1]
        lines = re.findall(r"^  ([\d, ]+)  ", help_text, re.MULTILINE)
        found = {int(code) for line in lines for code in line.split(",")}
        written = {int(row[0]) for row in tables("problems.md", "exit code", "meaning")}
        self.compare(found, written, EXIT_CODES_MIN)

    def compare(self, found, written, least):
        """Both sets are the same, and the one of the code has a least number of members."""
        self.assertGreaterEqual(len(found), least, "the code is written in another way: adapt the expression")
        self.assertEqual(sorted(found - written), [], "in the code and not in the document")
        self.assertEqual(sorted(written - found), [], "in the document and not in the code")


def sources():
    """The source files of what runs, without tests: path and text."""
    for top in ("shared", "functions", "infra"):
        for path in sorted((pages.ROOT / top).glob("**/src/**/*.rs")):
            if not TEST_FILES.search(str(path.relative_to(pages.ROOT))):
                yield path, code_of(path)


def code_of(path):
    return COMMENT.sub("", TESTS.sub("", path.read_text()))


def arguments(text, at):
    """The arguments of the macro whose parenthesis opens before `at`."""
    depth, begin, found = 1, at, []
    while True:
        literal = TEXT.match(text, at)
        if literal:
            at = literal.end()
            continue
        sign = text[at]
        depth += (sign in "([{") - (sign in ")]}")
        if depth == 0 or (depth == 1 and sign == ","):
            found.append(text[begin:at].strip())
            begin = at + 1
        if depth == 0:
            return [argument for argument in found if argument]
        at += 1


def metrics():
    """The names of metrics: literals in the macros, constants, and arguments of functions that count."""
    for _, text in sources():
        for macro in METRIC_MACRO.finditer(text):
            name = arguments(text, macro.end())[0]
            if METRIC_NAME.fullmatch(name):
                yield name.strip('"')
            elif name.isupper():
                yield re.search(rf"const {name}: &str = {METRIC_NAME.pattern};", text)[1]
            else:
                function = re.findall(r"\bfn (\w+)\(", text[: macro.start()])[-1]
                yield from re.findall(rf"(?<!fn )\b{function}\(\s*{METRIC_NAME.pattern}", text)


def log_lines():
    """Fields by crate, level and text of each line of the log."""
    found = {}
    for path, text in sources():
        for macro in LOG_MACRO.finditer(text):
            *fields, message = arguments(text, macro.end())
            if not TEXT.fullmatch(message):
                raise AssertionError(f"{path}: a line of the log whose text is no literal: {message}")
            names = (re.match(r"[%?]?([\w.]+)", field)[1] for field in fields)
            key = (crate_of(path), macro[1].upper(), WRAP.sub("", message[1:-1]))
            found.setdefault(key, set()).update(names)
    return found


def crate_of(path):
    """The name that the log shows as the first part of the target."""
    folder = next(one for one in path.parents if (one / "Cargo.toml").exists())
    name = tomllib.loads((folder / "Cargo.toml").read_text())["package"]["name"]
    return name.replace("-", "_")


def documented_lines():
    """The same of the document. The headings before the tables name the crates in code."""
    found = {}
    for heading, rows in sections("metrics-and-logs.md", "level", "message", "fields"):
        for row in rows:
            key = (codes(heading)[0], row[0], codes(row[1])[0])
            if key in found:
                raise AssertionError(f"twice in the document: {key}")
            found[key] = set(codes(row[2]))
    return found


def key_prefixes():
    """Keys, and prefixes of keys, of stored objects."""
    folder = pages.ROOT / "shared/core/src/stored"
    texts = [code_of(path) for path in sorted(folder.glob("**/*.rs"))]
    constant = re.compile(r'pub const \w+: &str = "([\w/-]+(?:/|\.json))";')
    return [key for text in texts for key in constant.findall(text)]


def problem_kinds():
    """Name and title by kind, of the kinds with a type of their own."""
    kinds = re.findall(r'Self::(\w+) => (?:\{\s*)?\(\s*"([a-z-]+)",\s*"([^"]+)"', problem_source())
    return {kind: (name, title) for kind, name, title in kinds}


def problem_statuses():
    """The status by kind."""
    body = re.search(r"const fn status\(self\) -> StatusCode \{(.*?)\n    \}", problem_source(), re.DOTALL)[1]
    arms = re.findall(r"((?:\|?\s*Self::\w+\s*)+)=> (?:\{\s*)?StatusCode::(\w+)", body)
    return {kind: STATUSES[code] for names, code in arms for kind in re.findall(r"Self::(\w+)", names)}


def problem_source():
    return code_of(pages.ROOT / "shared/core/src/api/problem.rs")


STATUSES = {
    "BAD_REQUEST": 400, "UNAUTHORIZED": 401, "NOT_FOUND": 404, "METHOD_NOT_ALLOWED": 405,
    "REQUEST_TIMEOUT": 408, "CONFLICT": 409, "GONE": 410,
    "PRECONDITION_FAILED": 412, "PAYLOAD_TOO_LARGE": 413, "URI_TOO_LONG": 414, "UNSUPPORTED_MEDIA_TYPE": 415,
    "UNPROCESSABLE_ENTITY": 422, "INTERNAL_SERVER_ERROR": 500, "SERVICE_UNAVAILABLE": 503,
    "INSUFFICIENT_STORAGE": 507,
}


def first_cells(name, *columns):
    """The code in the first cells of the tables with these columns."""
    return (code for row in tables(name, *columns) for code in codes(row[0]))


def tables(name, *columns):
    """The rows, as texts of Markdown, of the tables that have these columns, the first of them first."""
    return (row for _, rows in sections(name, *columns) for row in rows)


def sections(name, *columns):
    """The tables that have these columns, the first of them first, each with the heading before it."""
    tokens, heading, rows = pages.Page(REFERENCE / name).tokens, "", []
    for before, token in zip(tokens, tokens[1:]):
        if before.type == "heading_open":
            heading = token.content
        elif token.type == "table_open":
            rows = []
        elif token.type == "tr_open":
            rows.append([])
        elif before.type in ("th_open", "td_open"):
            rows[-1].append(token.content)
        elif token.type == "table_close" and rows[0][0] == columns[0] and set(columns) <= set(rows[0]):
            yield heading, rows[1:]


def codes(markdown):
    """The texts that stand in code."""
    return [text.strip() for _, text in re.findall(r"(`+)(.+?)\1", markdown)]


if __name__ == "__main__":
    unittest.main()
