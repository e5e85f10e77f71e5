"""Lines of the log: a sentence with fields for people, a JSON object for machines."""

import json
import logging
import sys
from dataclasses import replace

import pytest
from immutables import Map

from kvorum.metadata.cluster_image import BrokerRegistration, ClusterImage, ControllerRegistration
from kvorum.metadata.features import FeaturesImage
from kvorum.metadata.image import ImageDelta, MetadataImage
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.node.events.log_event import INTERVAL_MS, LogEvent, RareEvents
from kvorum.node.events.log_format import JsonFormatter
from kvorum.node.metadata_events import changes
from kvorum.wire.uuid_text import uuid_to_text

DIRECTORY, OTHER_DIRECTORY = bytes(15) + b"\x01", bytes(15) + b"\x02"
CORDONED = uuid_to_text(DIRECTORY)
BROKER = BrokerRegistration(
    id=3,
    epoch=12,
    incarnation_id=bytes(15) + b"\x07",
    listeners=(),
    supported_features=Map(),
    rack="rack a",
    is_fenced=True,
    is_in_controlled_shutdown=False,
    is_migrating_zk_broker=False,
    directories=(DIRECTORY, OTHER_DIRECTORY),
    cordoned_directories=(),
)
CONTROLLER = ControllerRegistration(
    id=1,
    incarnation_id=bytes(16),
    is_zk_migration_ready=False,
    listeners=(),
    supported_features=Map(),
)
NOTHING = MetadataImage()


def record_of(message: object, *arguments: object) -> logging.LogRecord:
    return logging.LogRecord("a.logger", logging.INFO, "file", 1, message, arguments, None)


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (LogEvent("All is well"), "All is well"),
        (
            LogEvent("A broker is fenced", broker=3, epoch=12),
            "A broker is fenced broker=3 epoch=12",
        ),
        (LogEvent("It was so", why=None, sure=True, share=0.5), "It was so sure=true share=0.5"),
        (LogEvent("It failed", error='no "way"\nout'), r'It failed error="no \"way\"\nout"'),
        (LogEvent("Empty", text=""), 'Empty text=""'),
        (LogEvent("Equal", text="a=b"), 'Equal text="a=b"'),
    ],
)
def test_a_line_is_a_sentence_and_fields_that_can_be_told_apart(event: LogEvent, line: str) -> None:
    assert record_of(event).getMessage() == line


def test_a_json_line_has_the_fields_as_keys() -> None:
    event = LogEvent("A broker is fenced", broker=3, level="high", why="a\nb")
    said = json.loads(JsonFormatter().format(record_of(event)))
    assert said.pop("time").endswith("+00:00")
    assert said == {
        "level": "INFO",
        "logger": "a.logger",
        "message": "A broker is fenced",
        "broker": 3,
        "level_": "high",
        "why": "a\nb",
    }


def test_a_json_line_is_one_line_whatever_is_in_it() -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError:
        record = record_of("%s and\n%s", "this", "that")
        record.exc_info = sys.exc_info()
    line = JsonFormatter().format(record)
    assert "\n" not in line
    said = json.loads(line)
    assert said["message"] == "this and\nthat"
    assert "ValueError: two\nlines" in said["exception"]


def with_broker(broker: BrokerRegistration) -> MetadataImage:
    return replace(NOTHING, cluster=ClusterImage(brokers=Map({broker.id: broker})))


def lines(before: MetadataImage, after: MetadataImage) -> list[str]:
    return [str(event) for event in changes(ImageDelta(before, after))]


def test_a_broker_comes_and_goes() -> None:
    registered = "A broker has registered broker=3 epoch=12"
    incarnation = uuid_to_text(BROKER.incarnation_id)
    there = with_broker(BROKER)
    assert lines(NOTHING, there) == [f'{registered} incarnation={incarnation} rack="rack a"']
    assert lines(there, NOTHING) == ["A broker is unregistered broker=3 epoch=12"]
    assert lines(there, there) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"is_fenced": False}, ["A broker is unfenced broker=3 epoch=12"]),
        (
            {"is_in_controlled_shutdown": True},
            ["A broker is being shut down in order broker=3 epoch=12"],
        ),
        (
            {"directories": (OTHER_DIRECTORY,)},
            [f"A broker has lost log directories broker=3 lost={uuid_to_text(DIRECTORY)} left=1"],
        ),
        (
            {"cordoned_directories": (DIRECTORY,)},
            [f"A broker's cordoned log directories have changed broker=3 cordoned={CORDONED}"],
        ),
        ({"rack": "elsewhere"}, []),
    ],
)
def test_a_change_of_a_broker_is_one_line(change: dict[str, object], said: list[str]) -> None:
    before = with_broker(BROKER)
    after = with_broker(replace(BROKER, **change))  # type: ignore[arg-type]  # fields by name
    assert lines(before, after) == said


def test_fencing_and_a_new_incarnation_are_reported() -> None:
    assert lines(with_broker(replace(BROKER, is_fenced=False)), with_broker(BROKER)) == [
        "A broker is fenced broker=3 epoch=12"
    ]
    (line,) = lines(with_broker(BROKER), with_broker(replace(BROKER, epoch=20)))
    assert line.startswith("A broker has registered broker=3 epoch=20")


def test_controllers_and_features_are_reported() -> None:
    there = replace(NOTHING, cluster=ClusterImage(controllers=Map({1: CONTROLLER})))
    assert lines(NOTHING, there) == ["A controller has registered controller=1"]
    again = replace(CONTROLLER, incarnation_id=bytes([1]) * 16)
    restarted = replace(NOTHING, cluster=ClusterImage(controllers=Map({1: again})))
    assert lines(there, restarted) == ["A controller has registered controller=1"]
    old = replace(NOTHING, features=FeaturesImage(MetadataVersion.V4_0_IV0))
    new = replace(
        NOTHING, features=FeaturesImage(MetadataVersion.V4_3_IV0, Map({"group.version": 1}))
    )
    assert lines(old, new) == [
        "A feature is on feature=group.version level=1",
        "A feature has changed feature=metadata.version level=30 before=22",
    ]
    assert "A feature is off feature=group.version before=1" in lines(new, old)


def test_what_happens_all_the_time_is_reported_once_in_a_while() -> None:
    events = RareEvents()
    assert events.happened(0) == 0
    assert [events.happened(time_ms) for time_ms in (1, 2, INTERVAL_MS - 1)] == [None, None, None]
    assert events.happened(INTERVAL_MS) == 3
    assert events.happened(INTERVAL_MS + 1) is None
    assert events.happened(3 * INTERVAL_MS) == 1
