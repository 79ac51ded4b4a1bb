"""Where a local stack keeps its things: options that `up` and `down` share, and the files by which others
find it. Keys and payloads lie there, so all of it is for its owner alone."""

import json
import os
import pathlib
import shlex

import package


def default():
    target = os.environ.get("CARGO_TARGET_DIR") or package.ROOT / "target"
    return pathlib.Path(target) / "emulator"


def add_option(parser):
    parser.add_argument(
        "--dir", type=pathlib.Path, default=default(), dest="folder", metavar="DIR",
        help="where its process id, log and data are (default: target/emulator)",
    )


def write(folder, stack):
    """`stack.json` for programs and `env` for shells. Both hold the admin key."""
    for name, text in (("stack.json", json.dumps(stack, indent=2)), ("env", exports(stack))):
        (folder / name).write_text(text)


def narrow(folder):
    """Makes the folder and all that this program and what it starts will make its owner's alone. What an
    earlier version left open to others is narrowed."""
    os.umask(0o077)
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    for path in folder.iterdir():
        if path.is_file() and not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o077)


def exports(stack):
    """What the CLI of posthaste and the CLI of AWS need to know, as lines of shell."""
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in stack["environment"].items())


def forget(folder):
    for name in ("stack.json", "env"):
        (folder / name).unlink(missing_ok=True)
