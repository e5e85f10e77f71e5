"""Logs of message formats 0 and 1, as nodes of former releases left them: served as by Kafka."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from tests.interop.clients.confluent import make_topics
from tests.support.clients.driver import TopicWish
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import Node
from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, fetch, produce
from tests.support.topics import wait_until_led

from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kvorum.wire.records import BatchOptions, RecordData, build_batch
from kvorum.wire.records.legacy import read_entries

FIRST_LOG: Final = "00000000000000000000.log"
SEVERAL: Final = "several-segments"
TIME_MS: Final = 1_500_000_000_000
TIMES: Final = (-1, -2, -3, 0, TIME_MS + 9, TIME_MS + 20, 2**62)
TIMES_IN_VAIN: Final = tuple(f"time {time}" for time in TIMES if 0 <= time < TIME_MS + 30)
CONFIGS: Final = {
    "retention.ms": "-1",
    "index.interval.bytes": "40",
    "message.timestamp.before.max.ms": str(2**62),
}

Log = dict[str, bytes]
"""The segments of a log by their file's name."""
State = Callable[[Path, dict[str, Log]], None]
"""Leaves a data directory with these logs as a stopped node leaves it."""


def end_of(data: bytes) -> int:
    return max(entry.last_offset for entry in read_entries(data)) + 1


def old_logs(golden_sets: Path) -> dict[str, Log]:
    found = sorted((golden_sets / "legacy-formats").iterdir())
    logs = {
        path.name.removesuffix("-0"): {FIRST_LOG: (path / FIRST_LOG).read_bytes()} for path in found
    }
    first = logs["magic0-gzip"][FIRST_LOG]
    end = end_of(first)
    options = BatchOptions(base_offset=end, partition_leader_epoch=0)
    second = build_batch([RecordData(b"new", b"k", TIME_MS + 30)], options)
    logs[SEVERAL] = {FIRST_LOG: first, f"{end:020}.log": second}
    return logs


def plant(data: Path, logs: dict[str, Log]) -> None:
    for topic, log in logs.items():
        folder = data / f"{topic}-0"
        for path in folder.iterdir():
            if path.name not in {"partition.metadata", "leader-epoch-checkpoint"}:
                path.unlink()
        for name, content in log.items():
            (folder / name).write_bytes(content)


def write_recovery_points(data: Path, points: dict[str, int]) -> None:
    lines = ["0", str(len(points)), *(f"{topic} 0 {offset}" for topic, offset in points.items())]
    (data / "recovery-point-offset-checkpoint").write_text("\n".join(lines) + "\n")


def after_a_crash(data: Path, _logs: dict[str, Log]) -> None:
    for name in ("recovery-point-offset-checkpoint", ".kafka_cleanshutdown"):
        (data / name).unlink(missing_ok=True)


def after_a_crash_with_recovery_points(data: Path, logs: dict[str, Log]) -> None:
    (data / ".kafka_cleanshutdown").unlink(missing_ok=True)
    write_recovery_points(data, {topic: end_of(log[max(log)]) for topic, log in logs.items()})


def after_a_clean_stop(data: Path, logs: dict[str, Log]) -> None:
    assert (data / ".kafka_cleanshutdown").exists()
    write_recovery_points(data, {topic: end_of(log[max(log)]) for topic, log in logs.items()})


def found_in(client: RawClient, topic: str, end: int) -> dict[str, object]:
    seen: dict[str, object] = {}
    for time in TIMES:
        wish = ListOffsetsRequest.ListOffsetsPartition(0, -1, time)
        request = ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(topic, [wish])])
        found = client.ask(request, ListOffsetsResponse, 7).topics[0].partitions[0]
        seen[f"time {time}"] = (found.error_code, found.offset, found.timestamp)
    for offset in range(end + 2):
        data = fetch(client, topic, offset)
        seen[f"offset {offset}"] = (
            data.error_code,
            data.high_watermark,
            data.log_start_offset,
            bytes(data.records or b"").hex(),
        )
    return seen


def files_of(data: Path, topic: str) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in sorted((data / f"{topic}-0").iterdir())
        if path.suffix in {".log", ".index", ".timeindex"}
    }


@contextmanager
def running_on(logs: dict[str, Log], node: Node, state: State) -> Generator[None]:
    """Run a formatted node that finds these logs in its directory."""
    with node:
        create(node.address, logs)
    plant(node.data, logs)
    state(node.data, logs)
    with node:
        yield


def create(bootstrap_servers: str, logs: dict[str, Log]) -> None:
    make_topics(bootstrap_servers, *(TopicWish(name, configs=CONFIGS) for name in logs))
    with RawClient(bootstrap_servers) as client:
        wait_until_led(client, *logs)


class Story(NamedTuple):
    """The fate of logs at a node, by topic: the records read, the end, the files left."""

    read: dict[str, dict[str, object]]
    more: dict[str, int]
    files: dict[str, dict[str, bytes]]


def story(node: Node, logs: dict[str, Log]) -> Story:
    with RawClient(node.address) as client:
        wait_until_led(client, *logs)
        read = {
            topic: found_in(client, topic, end_of(log[max(log)])) for topic, log in logs.items()
        }
        more = {topic: produce(client, topic, batch(b"more")).base_offset for topic in logs}
    node.stop()
    return Story(read, more, {topic: files_of(node.data, topic) for topic in logs})


@pytest.mark.parametrize(
    "state", [after_a_crash, after_a_crash_with_recovery_points, after_a_clean_stop]
)
def test_logs_of_old_formats_are_served_as_by_kafka(
    java: Java, kafka_tools: ToolRunner, golden_sets: Path, tmp_path: Path, state: State
) -> None:
    logs = old_logs(golden_sets)
    real = Node(tmp_path / "real", java=java).format(tools=kafka_tools)
    with running_on(logs, real, state):
        expected = story(real, logs)
    ours = Node(tmp_path / "ours").format()
    with running_on(logs, ours, state):
        got = story(ours, logs)
    for time in TIMES_IN_VAIN:
        # A segment without times counts by its file's: Kafka looks into it, and no further.
        assert expected.read[SEVERAL].pop(time) == (0, -1, -1)
        assert got.read[SEVERAL].pop(time) == (0, end_of(logs[SEVERAL][FIRST_LOG]), TIME_MS + 30)
    assert got.read == expected.read
    assert got.more == expected.more
    for topic, files in got.files.items():
        for name, content in files.items():
            theirs = expected.files[topic][name]
            if name.endswith(".index"):
                # After it has rebuilt an index, ours counts those bytes towards the next entry.
                assert content.startswith(theirs), (topic, name)
            else:
                assert content == theirs, (topic, name)
