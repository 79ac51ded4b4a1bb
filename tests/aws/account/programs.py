"""What a trial deploys: the template in the form that a release has, and the functions' programs, each as a zip."""

import pathlib
import sys
import tempfile
import zipfile

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "packaging"))

import archive  # noqa: E402
import build  # noqa: E402
import functions  # noqa: E402

# The version below which the programs lie in the trial's bucket. A template takes no other than its own.
VERSION = "trial"

# Where `sam build` leaves the programs.
BUILT = ROOT / ".aws-sam" / "build"


class Missing(Exception):
    """A program is not there, or is no program of Lambda."""


def version():
    """The version of posthaste in this clone."""
    return build.version()


def template():
    """template.yaml, with the programs in a bucket, as a release has it."""
    return functions.of_bucket((ROOT / "template.yaml").read_text(), VERSION).encode()


def zips(folder, architecture):
    """The bytes of each program's zip, by the key that it has below the bucket."""
    return {
        f"{VERSION}/{program}-{architecture}.zip": packed(program, pathlib.Path(folder), architecture)
        for program in functions.FUNCTIONS
    }


def packed(program, folder, architecture):
    """A program as a zip, from a folder of a release, of `sam build`, or of programs."""
    for name in (f"{program}-{architecture}.zip", f"{program}.zip"):
        if (folder / name).is_file():
            with zipfile.ZipFile(folder / name) as found:
                if found.namelist() != ["bootstrap"]:
                    raise Missing(f"{folder / name} is no program of Lambda: it holds {found.namelist()}")
            return (folder / name).read_bytes()
    for path in (*built(program, folder), folder / program):
        if path.is_file():
            with tempfile.NamedTemporaryFile(suffix=".zip") as zipped:
                archive.zip_of_program(path, zipped.name)
                return pathlib.Path(zipped.name).read_bytes()
    raise Missing(
        f"{folder} has no {program}: give --programs a folder of a release, or run `sam build` in the clone first"
    )


class Plain(yaml.SafeLoader):
    """Reads a template without the functions of CloudFormation."""


Plain.add_multi_constructor("!", lambda *_: None)


def built(program, folder):
    """Where `sam build` put a program: functions of one program share its folder, and the template says which."""
    template = folder / "template.yaml"
    if not template.is_file():
        return
    for resource in yaml.load(template.read_text(), Plain)["Resources"].values():
        properties = resource.get("Metadata", {}).get("BuildProperties", {})
        code = resource.get("Properties", {}).get("CodeUri")
        if properties.get("Binary") == program and isinstance(code, str):
            yield folder / code / "bootstrap"
