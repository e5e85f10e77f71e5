"""Fixtures for pytest: ``pytest_plugins = ["kvorum.testing.pytest_plugin"]``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from kvorum.testing.cluster import Cluster


@pytest.fixture
def kvorum_cluster_factory() -> Iterator[Callable[..., Cluster]]:
    """Return a function that starts clusters, with the arguments of `Cluster`; all are stopped."""
    with ExitStack() as running:

        def start(
            *,
            controllers: int = 1,
            brokers: int = 1,
            folder: Path | None = None,
            overrides: Mapping[str, str] | None = None,
        ) -> Cluster:
            cluster = Cluster(
                controllers=controllers, brokers=brokers, folder=folder, overrides=overrides
            )
            return running.enter_context(cluster)

        yield start


@pytest.fixture
def kvorum_cluster() -> Iterator[Cluster]:
    """Return a started cluster of one node, which is controller and broker."""
    with Cluster() as cluster:
        yield cluster
