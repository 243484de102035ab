# SPDX-License-Identifier: Apache-2.0
"""sbom.py - the list of what an archive or a wheel contains of others, as JSON of CycloneDX 1.6 (PEP 770)."""

import json
import re
import time

OWN_LICENCE = "Apache-2.0"


def component(name, version, licence, purl=None, **more):
    """A part that others made; `licence` is an SPDX expression."""
    fields = {"type": "library", "bom-ref": name, "name": name, "version": version,
              "licenses": [{"expression": licence}], "purl": purl or f"pkg:generic/{name.lower().replace(' ', '-')}@{version}"}
    return {**fields, **more}


def taken_from(name, version, purl, sha256):
    """Fields of a component that comes from a file of this package."""
    return {"pedigree": {"ancestors": [{"type": "library", "name": name, "version": version, "purl": purl,
                                        "hashes": [{"alg": "SHA-256", "content": sha256}]}]}}


# Tables in tokenize_tools/tokenizer/unicode/, in the source and in all that is compiled from it.
UNICODE = component("Unicode Character Database", "17.0.0", "Unicode-3.0", type="data",
                    description="tables made from its versions 8.0 to 17.0")


# What a source archive brings for systems without it: the file of this package, and its SHA-256.
XXHASH = "xxhash==4.1.0", "c9b288e4c1f5dae54417bc8a05e6f6daf505783d916b4783f4dd2f2e7d5db486"


def from_package(name, version, licence, requirement, sha256):
    """A component whose source is in a package of Python."""
    package, release = requirement.split("==")
    return component(name, version, licence, **taken_from(package, release, f"pkg:pypi/{package}@{release}", sha256))


def xxhash(header):
    """xxHash, of which this is the text of the header."""
    parts = (re.search(rf"define XXH_VERSION_{part} +(\d+)", header)[1] for part in ("MAJOR", "MINOR", "RELEASE"))
    return from_package("xxHash", ".".join(parts), "BSD-2-Clause", *XXHASH)


def licence(components):
    return " AND ".join([OWN_LICENCE, *sorted({part["licenses"][0]["expression"] for part in components})])


def document(version, seconds, components):
    """The text of the file, for tokmap of this version with these parts."""
    own = {"type": "library", "bom-ref": "tokmap", "name": "tokmap", "version": version,
           "licenses": [{"expression": OWN_LICENCE}], "purl": f"pkg:pypi/tokmap@{version}"}
    date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    names = [part["bom-ref"] for part in components]
    return json.dumps({
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": {"timestamp": date, "component": own}, "components": components,
        "dependencies": [{"ref": "tokmap", "dependsOn": names}, *({"ref": name} for name in names)],
    }, indent=2) + "\n"
