"""Fixtures for pytest, which an installed kvorum gives to every test: nothing is to be imported."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kvorum.node.embedded.overrides import OverrideValue
    from kvorum.testing.cluster import Cluster, ClusterFactory

NAME_LENGTH_MAX = 80


@pytest.fixture
def kvorum_cluster_factory() -> Iterator[ClusterFactory]:
    """Return a function that starts clusters, with the arguments of `Cluster`; all are stopped."""
    from kvorum.testing.cluster import Cluster  # noqa: PLC0415 - every run of pytest loads this file

    with ExitStack() as running:

        def start(
            *,
            controllers: int = 1,
            brokers: int = 1,
            folder: str | os.PathLike[str] | None = None,
            overrides: Mapping[str, OverrideValue] | None = None,
            security: str | None = None,
        ) -> Cluster:
            cluster = Cluster(
                controllers=controllers,
                brokers=brokers,
                folder=folder,
                overrides=overrides,
                security=security,
            )
            return running.enter_context(cluster)

        yield start


@pytest.fixture
def kvorum_cluster(kvorum_cluster_factory: ClusterFactory) -> Cluster:
    """Return a started cluster of one node, which is controller and broker."""
    return kvorum_cluster_factory()


@pytest.fixture(scope="session")
def kvorum_cluster_session() -> Iterator[Cluster]:
    """Return a started cluster of one node that all tests of the run share."""
    from kvorum.testing.cluster import Cluster  # noqa: PLC0415 - as above

    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def kvorum_topic(request: pytest.FixtureRequest, kvorum_cluster_session: Cluster) -> str:
    """Return the name of a new topic of one partition on `kvorum_cluster_session`."""
    test = re.sub(r"[^A-Za-z0-9._-]+", "-", str(request.node.name))
    name = f"{test[:NAME_LENGTH_MAX].strip('-')}-{secrets.token_hex(4)}"
    kvorum_cluster_session.create_topic(name)
    return name
