"""The Lambda programs as zips, and the template that takes them as they are: a deployment without a compiler."""

import re
import shutil

import archive
from build import FUNCTIONS, ROOT, Trouble, stripped

# What tells `sam build` how to build a function.
BUILT = re.compile(
    r"    Metadata:\n      BuildMethod: rust-cargolambda\n      BuildProperties: \{ Binary: ([a-z-]+) \}\n    Properties:\n"
)
CODE_OF_ALL = re.compile(r"    # What `sam build` needs.*\n.*\n    CodeUri: infra/lambda\n")
ARCHITECTURE = re.compile(r"(  Architecture:\n(?:    .*\n)*?    Default: )\S+\n((?:    .*\n)*)")

PARAMETERS = """\
  ReleaseBucket:
    Type: String
    Description: The bucket with the programs of releases. It is in the stack's region.
  ReleaseVersion:
    Type: String
    Description: The release whose programs the functions run. It is that of this template.
    Default: {version}
    # A deployment keeps what it is not told: without this the programs of the release before.
    AllowedValues: [{version}]
"""


def of_folder(template, architecture):
    """The template whose programs lie beside it."""
    template = with_code(template, lambda program: f"      CodeUri: {program}.zip\n")
    template, changed = ARCHITECTURE.subn(
        lambda it: f"{it[1]}{architecture}\n{re.sub('AllowedValues: .*', f'AllowedValues: [{architecture}]', it[2])}",
        template,
    )
    return once(template, changed, "Architecture")


def of_bucket(template, version):
    """The template whose programs lie in a bucket, below the version."""
    key = "${{ReleaseVersion}}/{program}-${{Architecture}}.zip"
    template = with_code(template, lambda program: (
        f"      CodeUri: {{ Bucket: !Ref ReleaseBucket, Key: !Sub '{key.format(program=program)}' }}\n"
    ))
    parameters = "Parameters:\n"
    changed = template.count(f"\n{parameters}")
    template = template.replace(
        f"\n{parameters}", f"\n{parameters}{PARAMETERS.format(version=version)}"
    )
    return once(template, changed, "Parameters")


def with_code(template, code):
    template, functions = BUILT.subn(lambda it: f"    Properties:\n{code(it[1])}", template)
    wanted = template.count("Type: AWS::Serverless::Function\n")
    if functions != wanted:
        raise Trouble(f"template.yaml builds {functions} of {wanted} functions as packaging/functions.py knows it")
    template, changed = CODE_OF_ALL.subn("", template)
    return once(template, changed, "CodeUri of all functions")


def once(template, changed, what):
    if changed != 1:
        raise Trouble(f"template.yaml has {changed} places of {what}, not one")
    return template


def make(programs, architecture, version, folder, out):
    """Makes the zips for a bucket, and the archive of a folder that `sam deploy` takes. Answers their paths."""
    template = (ROOT / "template.yaml").read_text()
    made = []
    ready = folder / f"posthaste-{version}-lambda-{architecture}"
    ready.mkdir()
    for program in FUNCTIONS:
        bare = stripped(programs[program], folder / f"{program}-{architecture}")
        path = out / f"{program}-{architecture}.zip"
        archive.zip_of_program(bare, path)
        shutil.copyfile(path, ready / f"{program}.zip")
        made.append(path)
    (ready / "template.yaml").write_text(of_folder(template, architecture))
    for name in ("samconfig.toml", "LICENSE", "CHANGELOG.md"):
        shutil.copyfile(ROOT / name, ready / name)
    path = out / f"{ready.name}.tar.gz"
    archive.tar_gz(ready, path)
    of_all = out / "template.yaml"
    of_all.write_text(of_bucket(template, version))
    return [*made, path, of_all]
