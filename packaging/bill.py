"""The bill of materials: which crates are in what is shipped, as CycloneDX 1.5 has it."""

import json
import subprocess
import uuid

from build import ROOT, run

PROGRAMS = ("posthaste", "posthaste-lambda")

# Where a version stands that belongs to crates.io, as `cargo metadata` names it.
REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"

# The serial number of a version's bill is the same whenever it is made.
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://github.com/posthaste/posthaste")


def write(path, version):
    """Writes it, from what Cargo.lock resolves for Linux."""
    path.write_text(json.dumps(of(version, metadata(), checksums()), indent=2) + "\n")


def metadata():
    said = run("cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform",
               "x86_64-unknown-linux-musl", cwd=ROOT, stdout=subprocess.PIPE)
    return json.loads(said.stdout)


def checksums():
    """The digest of each crate, as Cargo.lock pins it."""
    found, crate = {}, {}
    for line in (ROOT / "Cargo.lock").read_text().splitlines():
        name, _, value = line.partition(" = ")
        if line == "[[package]]":
            crate = {}
        elif name in ("name", "version", "checksum"):
            crate[name] = value.strip('"')
            if name == "checksum":
                found[crate["name"], crate["version"]] = crate["checksum"]
    return found


def shipped(metadata):
    """The packages that the programs are built from, and what each needs: neither tests nor build scripts."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    packages = {package["id"]: package for package in metadata["packages"]}
    waiting = [package["id"] for package in metadata["packages"] if package["name"] in PROGRAMS]
    needs = {}
    while waiting:
        package = waiting.pop()
        if package in needs:
            continue
        needs[package] = sorted(
            needed["pkg"]
            for needed in nodes[package]["deps"]
            if any(kind["kind"] is None for kind in needed["dep_kinds"])
        )
        waiting += needs[package]
    return {package: packages[package] for package in sorted(needs)}, needs


def of(version, metadata, checksums):
    """The whole document."""
    packages, needs = shipped(metadata)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, version)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application", "bom-ref": "posthaste", "name": "posthaste", "version": version,
                "licenses": [{"expression": "Apache-2.0"}],
            },
        },
        "components": [component(package, checksums) for package in packages.values()],
        "dependencies": [
            {"ref": "posthaste", "dependsOn": [
                reference(package) for package in packages.values() if package["name"] in PROGRAMS
            ]},
            *({"ref": reference(package), "dependsOn": [reference(packages[needed]) for needed in needs[name]]}
              for name, package in packages.items()),
        ],
    }


def reference(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package, checksums):
    described = {
        "type": "library",
        "bom-ref": reference(package),
        "name": package["name"],
        "version": package["version"],
    }
    if package["source"] == REGISTRY:
        described["purl"] = reference(package)
        described["hashes"] = [{
            "alg": "SHA-256", "content": checksums[package["name"], package["version"]],
        }]
    if package["license"]:
        # Older crates write the slash for "or".
        described["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    return described
