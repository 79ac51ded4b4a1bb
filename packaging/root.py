"""What of posthaste lies where on a Linux machine: the program, its unit, manual pages and completions."""

import gzip
import os
import pathlib
import re
import shutil
import subprocess

from archive import EPOCH, tree
from build import ROOT, repository, run, stripped, version

# A link or picture in Markdown that is neither an address nor a place in the same document.
LINK = re.compile(r"\]\((?!https?:|#)([^)\s]+)\)")

COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/posthaste",
    "fish": "usr/share/fish/vendor_completions.d/posthaste.fish",
    "zsh": "usr/share/zsh/site-functions/_posthaste",
}


def put(root, program, speaker):
    """Puts together the root folder of a package. `speaker` is a posthaste that runs on this machine: it writes
    the manual pages and completions, which are the same everywhere."""
    root = pathlib.Path(root)
    place(root, "usr/bin")
    stripped(program, root / "usr/bin/posthaste")
    for name, path in COMPLETIONS.items():
        script = run(speaker, "completions", name, stdout=subprocess.PIPE).stdout
        file = place(root, path, parent=True)
        file.write_text(script)
    manual = place(root, "usr/share/man/man1")
    run(speaker, "man", manual, stdout=subprocess.DEVNULL)
    for page in sorted(manual.iterdir()):
        (manual / f"{page.name}.gz").write_bytes(gzip.compress(page.read_bytes(), mtime=EPOCH))
        page.unlink()
    documents = place(root, "usr/share/doc/posthaste")
    for name in ("README.md", "CHANGELOG.md", "LICENSE"):
        text = (ROOT / name).read_text()
        (documents / name).write_text(with_addresses(text) if name.endswith(".md") else text)
    copied("posthaste.service", place(root, "usr/lib/systemd/system/posthaste.service", parent=True))
    copied("posthaste.env", place(root, "etc/posthaste/posthaste.env", parent=True))
    for path in tree(root):
        os.utime(path, (EPOCH, EPOCH))
    return root


def with_addresses(text):
    """A document whose links to other files of the repository are addresses of this version."""
    pages = f"{repository()}/blob/v{version()}"
    return LINK.sub(lambda link: f"]({pages}/{link[1]})", text)


def place(root, path, parent=False):
    """A folder below the root, or a file in one, which is made."""
    path = root / path
    (path.parent if parent else path).mkdir(parents=True, exist_ok=True)
    return path


def copied(name, path):
    shutil.copyfile(ROOT / "packaging" / name, path)
