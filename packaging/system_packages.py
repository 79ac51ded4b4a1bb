"""The Debian and the RPM package of a root folder."""

import os

from build import ROOT, TOOLS, run


def make(kind, root, machine, version, out):
    """Makes one, `deb` or `rpm`, and answers its path."""
    path = out / f"posthaste_{version}_{machine}.{kind}"
    environment = dict(os.environ, ROOT=str(root), ARCH=machine, VERSION=version)
    run(TOOLS / "packages/bin/nfpm", "package", "--config", "packaging/nfpm.yaml", "--packager", kind,
        "--target", path, cwd=ROOT, env=environment)
    return path
