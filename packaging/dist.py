"""Makes what a release consists of, from programs that it builds or that are given.

    packaging/dist                                    everything, for both machines: what `just dist` runs
    packaging/dist --machine amd64 --out FOLDER       for one machine, somewhere else
    packaging/dist --program amd64=PATH --functions amd64=FOLDER     from programs that are there
"""

import argparse
import hashlib
import pathlib
import shutil
import sys
import tempfile

import archive
import bill
import functions
import image
import root
import system_packages
from build import FUNCTIONS, MACHINES, TARGET, Trouble, build, version


def arguments(words):
    """The command line, with what is given for each machine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", action="append", choices=MACHINES, help="amd64 or arm64; both by default")
    parser.add_argument("--out", type=pathlib.Path, default=TARGET / "release-files", help="a folder, made anew")
    parser.add_argument("--profile", default="dist", help="of what is built")
    parser.add_argument("--program", action="append", default=[], metavar="MACHINE=PATH")
    parser.add_argument("--functions", action="append", default=[], metavar="MACHINE=FOLDER")
    given = parser.parse_args(words)
    given.machine = given.machine or list(MACHINES)
    for name in ("program", "functions"):
        pairs = dict(pair.split("=", 1) for pair in getattr(given, name))
        setattr(given, name, {machine: pathlib.Path(path).resolve() for machine, path in pairs.items()})
    given.out = given.out.resolve()
    return given


def program_of(given, machine):
    """The program for a machine, and those of Lambda."""
    program = given.program.get(machine)
    if program is None:
        program = build("posthaste", ["posthaste"], machine, given.profile)["posthaste"]
    folder = given.functions.get(machine)
    if folder is None:
        profile = "lambda" if given.profile == "dist" else given.profile
        return program, build("posthaste-lambda", FUNCTIONS, machine, profile)
    return program, {name: folder / name for name in FUNCTIONS}


def make(given, folder):
    """Makes all files of the release."""
    of_all = {machine: program_of(given, machine) for machine in given.machine}
    # The manual is the same on each machine, and this one runs the first.
    speaker = of_all[given.machine[0]][0]
    number = version()
    for machine, (program, of_lambda) in of_all.items():
        rust, of_aws = MACHINES[machine]
        files = root.put(folder / f"root-{machine}", program, speaker)
        for kind in ("deb", "rpm"):
            system_packages.make(kind, files, machine, number, given.out)
        packed = folder / f"posthaste-{number}-{rust}-linux"
        shutil.copytree(files / "usr/share/doc/posthaste", packed)
        shutil.copyfile(files / "usr/bin/posthaste", packed / "posthaste")
        (packed / "posthaste").chmod(0o755)
        shutil.copytree(files / "usr/share/man", packed / "man")
        for shell, path in root.COMPLETIONS.items():
            shutil.copyfile(files / path, packed / f"posthaste.{shell}")
        archive.tar_gz(packed, given.out / f"{packed.name}.tar.gz")
        image.make(program, machine, number, folder, given.out)
        functions.make(of_lambda, of_aws, number, folder, given.out)
    for name in ("compose.yaml", "kubernetes/posthaste.yaml"):
        source = pathlib.Path(__file__).parent / name
        text = source.read_text().replace("latest", number)
        (given.out / (name if "/" not in name else "kubernetes.yaml")).write_text(text)
    bill.write(given.out / f"posthaste-{number}.cdx.json", number)


def write_checksums(out):
    """What `sha256sum --check SHA256SUMS` reads."""
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(out.iterdir())
    ]
    (out / "SHA256SUMS").write_text("".join(lines))


def main():
    given = arguments(sys.argv[1:])
    shutil.rmtree(given.out, ignore_errors=True)
    given.out.mkdir(parents=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            make(given, pathlib.Path(folder))
        write_checksums(given.out)
    except Trouble as trouble:
        sys.exit(f"packaging: {trouble}")
    for path in sorted(given.out.iterdir()):
        print(f"{path.stat().st_size:>12,} {path.name}")


if __name__ == "__main__":
    main()
