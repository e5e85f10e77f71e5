"""Fixtures for the tests that run one script on two controllers."""

from __future__ import annotations

import pytest
from tests.interop.kafka.fetch_jars import (
    JARS_ROOT,
    REFERENCE_RELEASE,
    NotToBeHadError,
    find_java,
)
from tests.interop.kafka.java import Java


@pytest.fixture(scope="session")
def java() -> Java:
    """A Java runtime with the jars of the reference release."""
    jars = JARS_ROOT / REFERENCE_RELEASE
    if not jars.is_dir():
        pytest.skip(f"no jars of Kafka {REFERENCE_RELEASE} ('make setup' fetches them)")
    try:
        return Java(find_java(), jars)
    except NotToBeHadError as error:
        pytest.skip(str(error))
