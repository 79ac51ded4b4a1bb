"""The image of a container, made by buildah without a daemon."""

import pathlib
import re
import shutil
import subprocess

import archive
from build import ROOT, Trouble, run, stripped

# The user of the image: nobody of the machine's, as the images of distroless have it.
USER = 65532

# Where Debian and others keep the certificates of authorities, without which no endpoint is trusted.
AUTHORITIES = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")

# Images come from this machine alone; whether one is signed is asked where it is fetched.
POLICY = '{"default": [{"type": "insecureAcceptAnything"}]}'


def put(root, program):
    """Puts together the image's root folder."""
    root = pathlib.Path(root)
    for folder in ("usr/bin", "etc/ssl/certs", "tmp"):
        (root / folder).mkdir(parents=True)
    stripped(program, root / "usr/bin/posthaste")
    if not AUTHORITIES.is_file():
        raise Trouble(f"{AUTHORITIES} is not there: install ca-certificates")
    shutil.copyfile(AUTHORITIES, root / "etc/ssl/certs/ca-certificates.crt")
    (root / "etc/passwd").write_text(f"posthaste:x:{USER}:{USER}:posthaste:/data:/sbin/nologin\n")
    (root / "etc/group").write_text(f"posthaste:x:{USER}:\n")
    (root / "tmp").chmod(0o1777)
    for library in libraries(program):
        path = root / library.relative_to("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(library, path)
        path.chmod(0o755)
    return root


def libraries(program):
    """What a program loads when it starts: nothing where it is static."""
    said = subprocess.run(["ldd", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    named = re.findall(r"(/\S+) \(0x", said.stdout)
    return [pathlib.Path(path) for path in named]


def make(program, machine, version, folder, out):
    """Makes the image, and answers the path of its archive, which `docker load` and `podman load` read."""
    context = folder / f"image-{machine}"
    put(context / "root", program)
    policy = context / "policy.json"
    policy.write_text(POLICY)
    # Nothing of the machine is used but files: no daemon, no storage of root's, no namespaces.
    buildah = ["buildah", "--storage-driver", "vfs", "--root", context / "storage", "--runroot", context / "run"]
    name = f"posthaste:{version}"
    (context / "data").mkdir(mode=0o700)
    run(*buildah, "build", "--quiet", "--signature-policy", policy, "--isolation", "chroot", "--format", "docker",
        "--arch", machine, "--timestamp", "0", "--label", f"org.opencontainers.image.version={version}",
        "--tag", name, "--file", ROOT / "packaging/Containerfile", context)
    plain = folder / f"image-{machine}.tar"
    run(*buildah, "push", "--quiet", "--signature-policy", policy, name, f"docker-archive:{plain}:{name}")
    return archive.gz(plain, out / f"posthaste-{version}-image-{machine}.tar.gz")
