# SPDX-License-Identifier: Apache-2.0
"""The bill of materials of a release, as SPDX 2.3 in JSON: its files, what of others
is inside them, and what they need beside them. For scripts/release."""
import collections
import json
import re
import time

# One file of a release; `contains` and `needs` are pairs of a name and a version.
Made = collections.namedtuple("Made", "path purl contains needs")
LICENSES = {"jansson": "MIT", "libuv": "MIT", "llhttp": "MIT",
            "lz4": "BSD-2-Clause", "zstd": "BSD-3-Clause"}


def identifier(*words):
    text = "-".join(words).replace(">=", "from")
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.]+", "-", text)


def file_package(made, version, digest):
    """The entry of a file of the release."""
    entry = {
        "SPDXID": identifier("File", made.path),
        "name": made.path,
        "packageFileName": made.path,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "Apache-2.0",
        "licenseDeclared": "Apache-2.0",
        "copyrightText": "The authors of uvarrow",
        "checksums": [{"algorithm": "SHA256", "checksumValue": digest}],
    }
    if made.purl:
        entry["externalRefs"] = [{
            "referenceCategory": "PACKAGE-MANAGER",
            "referenceType": "purl", "referenceLocator": made.purl}]
    return entry


def other_package(name, version):
    """The entry of what others have made."""
    known = LICENSES.get(name, "NOASSERTION")
    return {
        "SPDXID": identifier("Other", name, version),
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": known,
        "licenseDeclared": known,
        "copyrightText": "NOASSERTION",
    }


def relations(made):
    """Yields what a file contains and needs, and that it is of this release."""
    here = identifier("File", made.path)
    yield "SPDXRef-DOCUMENT", "DESCRIBES", here
    for kind, others in (("CONTAINS", made.contains), ("DEPENDS_ON", made.needs)):
        for name, version in others:
            yield here, kind, identifier("Other", name, version)


def text_of(files, digests, version, commit, date):
    """The document: of the same files always the same. `date` is in seconds."""
    others = sorted({other for made in files
                     for other in (*made.contains, *made.needs)})
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"uvarrow-{version}",
        "documentNamespace":
            f"https://example.org/spdx/uvarrow-{version}-{commit}",
        "creationInfo": {
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(date)),
            "creators": ["Tool: uvarrow-scripts-release"],
        },
        "packages": [file_package(made, version, digests[made.path])
                     for made in files] + [other_package(*it) for it in others],
        "relationships": [
            {"spdxElementId": one, "relationshipType": kind,
             "relatedSpdxElement": other}
            for made in files for one, kind, other in relations(made)],
    }
    return json.dumps(document, indent=1) + "\n"
