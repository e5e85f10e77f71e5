"""The compatibility statement as data: the APIs that a node serves, taken from the registry.

``python -m kvorum.node.compatibility docs/compatibility.json`` rewrites the file; a test compares
it with the registry, and both with the responses of a running node.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from kvorum.metadata.features import FEATURES, VersionRange
from kvorum.metadata.metadata_version import (
    LATEST_PRODUCTION_METADATA_VERSION,
    METADATA_VERSION_FEATURE,
    MINIMUM_METADATA_VERSION,
)
from kvorum.metadata.reference_release import REFERENCE_RELEASE
from kvorum.node.handlers.registry import broker_apis, controller_apis
from kvorum.node.serving.request_handler import ServedApis, Services
from kvorum.wire.apis import API_SPECS


class ApiEntry(TypedDict):
    """One API on one listener, with the range of versions in ApiVersions."""

    key: int
    name: str
    min_version: int
    max_version: int


class ListenerEntry(TypedDict):
    """The APIs served on one kind of listener, and those that only Kafka serves there."""

    served: list[ApiEntry]
    not_served: list[str]


class FeatureEntry(TypedDict):
    """The levels of one feature that a broker offers."""

    name: str
    min_level: int
    max_level: int


class Compatibility(TypedDict):
    """The whole statement."""

    reference_release: str
    metadata_versions: list[str]
    features: list[FeatureEntry]
    listeners: dict[str, ListenerEntry]


def compatibility() -> Compatibility:
    """Return the statement for this version of kvorum."""
    first, last = MINIMUM_METADATA_VERSION, LATEST_PRODUCTION_METADATA_VERSION
    features = [FeatureEntry(name=METADATA_VERSION_FEATURE, min_level=first, max_level=last)]
    features += [
        FeatureEntry(name=each.name, min_level=each.served.min, max_level=each.served.max)
        for each in FEATURES
        if each.served_max > 0
    ]
    return {
        "reference_release": REFERENCE_RELEASE,
        "metadata_versions": [first.text, last.text],
        "features": features,
        "listeners": {
            "broker": _listener("broker", _ranges(broker_apis())),
            "controller": _listener("controller", _ranges(controller_apis())),
        },
    }


def compatibility_text() -> str:
    """Return the statement as the text of its file."""
    return json.dumps(compatibility(), indent=2) + "\n"


def _ranges(apis: ServedApis[Services]) -> dict[int, VersionRange]:
    return {key: VersionRange(api.min_listed, api.max_version) for key, api in apis.items()}


def _listener(kind: str, ranges: Mapping[int, VersionRange]) -> ListenerEntry:
    served = [
        ApiEntry(
            key=key, name=API_SPECS[key].name, min_version=versions.min, max_version=versions.max
        )
        for key, versions in sorted(ranges.items())
    ]
    others = [
        spec.name
        for key, spec in sorted(API_SPECS.items())
        if kind in spec.listeners and key not in ranges
    ]
    return ListenerEntry(served=served, not_served=others)


def main(arguments: Sequence[str]) -> int:
    """Write the statement into the named file."""
    Path(arguments[0]).write_text(compatibility_text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
