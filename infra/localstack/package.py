"""The programs of the functions, built by cargo and packed as Lambda wants them: a zip with one program named
`bootstrap`."""

import json
import pathlib
import shutil
import subprocess
import tempfile
import zipfile

PROGRAMS = ("posthaste-delivery", "posthaste-log")

ROOT = pathlib.Path(__file__).resolve().parents[2]


def build(profile):
    """Builds the programs for this machine, and answers where each lies."""
    command = ["cargo", "build", "--locked", "--package", "posthaste-lambda", "--bins", "--profile", profile]
    messages = subprocess.run(
        [*command, "--message-format", "json-render-diagnostics"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    # cargo says where it put them, which depends on CARGO_TARGET_DIR, the profile and cargo's own
    # configuration.
    built = {}
    for line in messages.stdout.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["executable"]:
            built[message["target"]["name"]] = pathlib.Path(message["executable"])
    return {name: built[name] for name in PROGRAMS}


def pack(program, archive):
    """Packs one program, without its symbols where `strip` is there: they are most of a quick build."""
    with tempfile.TemporaryDirectory() as folder:
        bootstrap = pathlib.Path(folder) / "bootstrap"
        shutil.copyfile(program, bootstrap)
        bootstrap.chmod(0o755)
        if shutil.which("strip"):
            subprocess.run(["strip", bootstrap], stderr=subprocess.DEVNULL, check=False)
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
            packed.write(bootstrap, "bootstrap")
