"""Fixtures for pytest, which an installed kvorum gives to every test: nothing is to be imported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kvorum.node.embedded.overrides import OverrideValue
    from kvorum.testing.cluster import Cluster


@pytest.fixture
def kvorum_cluster_factory() -> Iterator[Callable[..., Cluster]]:
    """Return a function that starts clusters, with the arguments of `Cluster`; all are stopped."""
    from kvorum.testing.cluster import Cluster  # noqa: PLC0415 - every run of pytest loads this file

    with ExitStack() as running:

        def start(
            *,
            controllers: int = 1,
            brokers: int = 1,
            folder: Path | None = None,
            overrides: Mapping[str, OverrideValue] | None = None,
        ) -> Cluster:
            cluster = Cluster(
                controllers=controllers, brokers=brokers, folder=folder, overrides=overrides
            )
            return running.enter_context(cluster)

        yield start


@pytest.fixture
def kvorum_cluster(kvorum_cluster_factory: Callable[..., Cluster]) -> Cluster:
    """Return a started cluster of one node, which is controller and broker."""
    return kvorum_cluster_factory()
