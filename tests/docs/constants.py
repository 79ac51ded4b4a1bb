"""Constants of the code, read from its text, so that no program has to be built: lengths of time in seconds,
everything else as it is counted there."""

import functools
import re

import pages

CONST = re.compile(r"^ *(?:pub(?:\([a-z]+\))? )?const (\w+): [^=]+? =\s(.*?);$", re.DOTALL | re.MULTILINE)
TESTS = re.compile(r"\n#\[cfg\((?:all\()?test\b[^\n]*\]\n(?:#\[[^\n]*\]\n)*mod \w+ \{.*", re.DOTALL)
COMMENT = re.compile(r"//.*$", re.MULTILINE)
SUFFIX = re.compile(r"(?<=\d)_(?=\d)|\b(?:as|_?)(?: ?)(?:usize|u64|u32|u16|i64|f64)\b")

SHARED = "shared/core/src/model/limits.rs"

UNITS = {"millis": 0.001, "secs": 1, "mins": 60, "hours": 3600}


@functools.cache
def source(path):
    """A file without its tests and comments."""
    text = TESTS.sub("", (pages.ROOT / path).read_text())
    return COMMENT.sub("", text)


@functools.cache
def every():
    """The constants by name: for each file that has one of that name, its expression."""
    found = {}
    for folder in ("shared", "functions", "infra"):
        for path in sorted((pages.ROOT / folder).glob("*/src/**/*.rs")):
            name = str(path.relative_to(pages.ROOT))
            for constant, expression in CONST.findall(source(name)):
                found.setdefault(constant, {})[name] = expression
    return found


def constant(name, path=None):
    """The value of a constant. The file is needed where several have one of that name, none of them the limits
    that all share."""
    files = every().get(name, {})
    if path is None and SHARED in files:
        path = SHARED
    if path is None:
        if len(files) != 1:
            raise LookupError(f"{name} is in {sorted(files)}: name the file")
        [path] = files
    return value(files[path], path)


def default(kind, field, path):
    """The value of a field in `impl Default for` a struct."""
    block = re.search(rf"impl Default for {kind} \{{(.*?)\n\}}", source(path), re.DOTALL)[1]
    return value(re.search(rf"\b{field}: (.*?),\n", block)[1], path)


class Names(dict):
    """What an expression may name: constants, of its own file first."""

    def __init__(self, path):
        super().__init__(min=min, max=max, secs=lambda n: n)
        self.path = path

    def __missing__(self, name):
        files = every().get(name, {})
        return constant(name, self.path if self.path in files else None)


def value(expression, path):
    """The value of an expression. It is the repository's own text."""
    text = expression.strip()
    for unit, seconds in UNITS.items():
        text = re.sub(rf"Duration::from_{unit}\(", f"{seconds} * (", text)
    text = text.replace("Duration::ZERO", "0").replace(".saturating_add(", " + (")
    text = re.sub(r"\b\w+::(?=[A-Za-z_]\w*\b)", "", text)
    text = SUFFIX.sub("", text)
    if "..=" in text:
        return tuple(value(part, path) for part in text.split("..="))
    return eval(text.replace("\n", " "), {"__builtins__": {}}, Names(path))


def row(name, path="shared/core/src/pressure/table.rs"):
    """Thresholds and history of a row of back pressure; what it does not say is that of the row it is made of."""
    written = every()[name][path]
    base = re.search(r"\.\.([A-Z_]+)\s*\}\s*$", written)
    found = dict(row(base[1], path)) if base else {}
    if thresholds := re.search(r"LevelThresholds::new\(([^)]*)\)", written):
        found["thresholds"] = [value(one, path) for one in thresholds[1].split(",")]
    if history := re.search(r"history_depth: (?:Some\(([\d_]+)\)|None)", written):
        found["history"] = value(history[1], path) if history[1] else None
    return found
