"""Where a local stack keeps its things: options that `up` and `down` share, and the files by which others find it."""

import json
import os
import pathlib
import shlex

import package


def default():
    target = os.environ.get("CARGO_TARGET_DIR") or package.ROOT / "target"
    return pathlib.Path(target) / "localstack"


def add_option(parser):
    parser.add_argument(
        "--dir", type=pathlib.Path, default=default(), dest="folder", metavar="DIR",
        help="where its process id, log and data are (default: target/localstack)",
    )


def write(folder, stack):
    """`stack.json` for programs and `env` for shells. Both hold the admin key, and only their owner may read them."""
    for name, text in (("stack.json", json.dumps(stack, indent=2)), ("env", exports(stack))):
        path = folder / name
        path.touch(mode=0o600)
        path.write_text(text)


def exports(stack):
    """What the CLI of posthaste and the CLI of AWS need to know, as lines of shell."""
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in stack["environment"].items())


def forget(folder):
    for name in ("stack.json", "env"):
        (folder / name).unlink(missing_ok=True)
