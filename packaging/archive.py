"""Archives whose bytes depend on what is in them alone: no times, no owners, one order."""

import gzip
import pathlib
import shutil
import tarfile
import zipfile

# 1980-01-01, the first day that a zip can name.
EPOCH = 315532800


def tree(folder):
    """Every file and folder below a folder, in one order."""
    return sorted(pathlib.Path(folder).rglob("*"))


def tar_gz(folder, archive):
    """Packs a folder, under its own name."""
    folder = pathlib.Path(folder)

    def plain(member):
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mtime = EPOCH
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        return member

    with open(archive, "wb") as file:
        with gzip.GzipFile("", "wb", mtime=0, fileobj=file) as packed:
            with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
                for path in [folder, *tree(folder)]:
                    name = str(path.relative_to(folder.parent))
                    tar.add(path, name, recursive=False, filter=plain)


def gz(path, archive):
    """Packs one file."""
    with open(path, "rb") as file, open(archive, "wb") as into:
        with gzip.GzipFile("", "wb", mtime=0, fileobj=into) as packed:
            shutil.copyfileobj(file, packed)
    return archive


def zip_of_program(program, archive):
    """Packs one program as Lambda wants it: under the name `bootstrap`."""
    member = zipfile.ZipInfo("bootstrap")
    member.external_attr = 0o100755 << 16
    member.compress_type = zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr(member, pathlib.Path(program).read_bytes())
