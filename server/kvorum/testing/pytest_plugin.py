"""Fixtures for pytest: ``pytest_plugins = ["kvorum.testing.pytest_plugin"]``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from kvorum.testing.cluster import Cluster


@pytest.fixture
def kvorum_cluster_factory() -> Iterator[Callable[..., Cluster]]:
    """Give a function that starts clusters, with the arguments of `Cluster`; all are stopped."""
    with ExitStack() as running:

        def start(*, overrides: dict[str, str] | None = None) -> Cluster:
            return running.enter_context(Cluster(overrides=overrides))

        yield start


@pytest.fixture
def kvorum_cluster() -> Iterator[Cluster]:
    """Give a started cluster of one node."""
    with Cluster() as cluster:
        yield cluster
