"""Every field of every request of a controller at its limits and beyond, beside a real one.

The newest version of each request; all versions with KVORUM_BAD_INPUT=all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.interop.differential.bad_input_scripts import CLUSTER, GOOD, bad_input_scripts
from tests.interop.differential.harness import OUR_OWN_WORDS
from tests.interop.differential.script import API_KEYS
from tests.interop.differential.surviving import FAILURE_OF_OURS, Survivors
from tests.support.kafka.java import Java

from kvorum.wire.apis import request_class

IS_WHOLE = os.environ.get("KVORUM_BAD_INPUT") == "all"


@pytest.fixture(scope="module")
def survivors(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Survivors]:
    """Both controllers, for all requests."""
    survivors = Survivors(java, tmp_path_factory.mktemp("bad-input"))
    try:
        yield survivors
    finally:
        survivors.close()


def _versions(api: str) -> range:
    kind = request_class(API_KEYS[api])
    first = kind.MIN_VERSION if IS_WHOLE else kind.MAX_VERSION
    return range(first, kind.MAX_VERSION + 1)


@pytest.mark.slow
@pytest.mark.parametrize("api", GOOD)
def test_no_value_of_a_field_is_met_otherwise_than_by_kafka(api: str, survivors: Survivors) -> None:
    findings = [
        finding
        for version in _versions(api)
        for script in bad_input_scripts(api, version)
        for finding in survivors.run(script, set_up=len(CLUSTER))
        if not all(one.where.endswith(OUR_OWN_WORDS) for one in finding.differences)
    ]
    assert not findings, "\n".join(str(finding)[:2000] for finding in findings)
    assert survivors.pair is None or FAILURE_OF_OURS not in "\n".join(survivors.pair.ours.lines())
