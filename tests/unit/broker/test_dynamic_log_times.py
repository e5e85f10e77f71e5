"""Dynamic times of a broker's logs: which are refused, and which are not applied."""

import pytest

from kvorum.broker.view_api import BrokerView
from kvorum.broker.views.alter_configs import Screened, screen
from kvorum.broker.views.config_layers import config_layers
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.standard_authorizer import UNRESTRICTED
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest

Alter = IncrementalAlterConfigsRequest.AlterableConfig
Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
BROKER = ResourceType.BROKER
SET = 0
VIEW = BrokerView(node_id=1, cluster_id="c", listener="PLAIN", access=UNRESTRICTED)
IMPOSSIBLE = [
    ("log.roll.ms", "0", "log.roll.ms must be greater than or equal to 1"),
    ("log.roll.jitter.ms", "-1", "log.roll.jitter.ms must be greater than or equal to 0"),
    (
        "log.retention.ms",
        "0",
        "log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
    ),
]
"""A key, a value that parses, and Kafka's word for what it would have to be."""


def screened(
    image: MetadataImage, name: str, value: str, *, broker: str
) -> Screened[IncrementalAlterConfigsRequest]:
    change = Resource(BROKER, broker, [Alter(name, SET, value)])
    return screen(image, IncrementalAlterConfigsRequest(resources=[change]), VIEW)


@pytest.mark.parametrize("broker", ["", "1"])
@pytest.mark.parametrize(("name", "value", "problem"), IMPOSSIBLE)
def test_a_time_after_which_no_log_can_end_is_refused(
    broker: str, name: str, value: str, problem: str
) -> None:
    refusal = screened(MetadataImage(), name, value, broker=broker).answers[0]
    assert refusal is not None
    assert refusal.code == ErrorCode.INVALID_REQUEST
    assert refusal.message == f"requirement failed: {problem}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log.roll.ms", "1"),
        ("log.roll.jitter.ms", "0"),
        ("log.retention.ms", "1"),
        ("log.retention.ms", "-2"),
    ],
)
def test_the_nearest_possible_times_are_passed_on(name: str, value: str) -> None:
    assert not screened(MetadataImage(), name, value, broker="").answers


@pytest.mark.parametrize(("name", "value", "problem"), IMPOSSIBLE)
def test_such_a_time_that_a_controller_has_let_through_is_not_applied(
    name: str, value: str, problem: str
) -> None:
    del problem
    image = MetadataImage()
    for offset, broker in enumerate(("", "1")):
        image = image.apply(ConfigRecord(BROKER, broker, name, value), 0, offset)
    assert name not in config_layers(image.configs, node_id=1, texts={}).texts()
    assert not screened(image, "num.io.threads", "9", broker="1").answers
