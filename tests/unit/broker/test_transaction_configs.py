"""Whether transactions have to be verified: the node's value, the cluster's, the file's, true."""

from __future__ import annotations

import pytest

from kvorum.broker.transaction_configs import VERIFICATION_KEY, is_verification_enabled
from kvorum.metadata.effective_configs import BrokerConfigLayers


@pytest.mark.parametrize(
    ("node", "cluster", "static", "expected"),
    [
        (None, None, None, True),
        (None, None, "false", False),
        (None, "true", "false", True),
        ("false", "true", "true", False),
        (None, "neither", "false", True),
    ],
)
def test_the_nearest_value_counts(
    node: str | None, cluster: str | None, static: str | None, *, expected: bool
) -> None:
    layers = (
        {} if value is None else {VERIFICATION_KEY: value} for value in (node, cluster, static)
    )
    assert is_verification_enabled(BrokerConfigLayers(*layers)) is expected
