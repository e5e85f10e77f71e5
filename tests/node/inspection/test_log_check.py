"""The findings of `kvorum log check` in sound files and in damaged ones."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.support.damaged_files import Contents, Damage, Vandal, read_contents
from tests.support.fixtures import Report as Measured
from tests.support.golden_data import METADATA_NODES
from tests.support.packed_variants import lz4_variants

from kvorum.cli import main
from kvorum.inspection.log_check.check import (
    OFFSET_CHECKPOINTS,
    NothingToCheckError,
    Report,
    check_paths,
)
from kvorum.inspection.log_check.findings import Finding, Rule, Severity, Verdict
from kvorum.inspection.reading import TIME_ENTRY
from kvorum.storage.errors import StorageError
from kvorum.storage.log.batch_header import HEADER_SIZE
from kvorum.storage.log.epochs import decode_leader_epochs
from kvorum.storage.metadata_log.flushed_offset import FLUSHED_OFFSET_FILE
from kvorum.storage.small_files.clean_shutdown import CLEAN_SHUTDOWN_FILE, broker_epoch_of
from kvorum.storage.small_files.meta_properties import decode_meta_properties
from kvorum.storage.small_files.offset_checkpoint_file import decode_offsets
from kvorum.storage.small_files.partition_metadata import decode_partition_metadata
from kvorum.storage.small_files.quorum_state import decode_quorum_state
from kvorum.testing import Cluster
from kvorum.wire.checksums import crc32c
from kvorum.wire.records import BatchOptions, Compression, RecordData, build_batch, read_batches
from kvorum.wire.records.batch import CRC_START, HEADER_BYTES

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
RECORDS: Final = 120
SEGMENT_BYTES: Final = "2000"
TIMEOUT_S: Final = 30
BYTE_ORDER_MARK: Final = "\ufeff".encode()
CHANGED_TEXTS: Final[list[tuple[str, Callable[[bytes], bytes], list[Severity]]]] = [
    ("meta.properties", lambda _: b"", [Severity.DAMAGE]),
    ("meta.properties", lambda data: data.replace(b"=", b" = "), []),
    ("meta.properties", lambda data: BYTE_ORDER_MARK + data, [Severity.NOTE]),
    ("meta.properties", lambda data: data.removesuffix(b"\n"), []),
    ("meta.properties", lambda data: data + b"unknown=1\n", [Severity.NOTE]),
    (
        "meta.properties",
        lambda data: data.replace(b"cluster.id", b"cluster.ie"),
        [Severity.DAMAGE],
    ),
    ("packed-none-0/partition.metadata", lambda data: data.replace(b"\n", b"\r\n"), []),
    ("packed-none-0/partition.metadata", lambda data: data + b"\nmore", [Severity.NOTE]),
    ("__cluster_metadata-0/quorum-state", lambda data: data + b"\n", []),
    ("__cluster_metadata-0/quorum-state", lambda data: data + b"\r\n", []),
    ("__cluster_metadata-0/quorum-state", lambda data: data + b"\nmore", [Severity.NOTE]),
    ("__cluster_metadata-0/quorum-state", lambda data: data[1:], [Severity.DAMAGE]),
    (".kafka_cleanshutdown", lambda _: b"", []),
    (".kafka_cleanshutdown", lambda _: b"[" * 100_000, [Severity.NOTE]),
    ("packed-none-0/leader-epoch-checkpoint", lambda _: b"0\n1\n0  0", [Severity.NOTE]),
    ("packed-none-0/leader-epoch-checkpoint", lambda _: b"0\n1\n0_0 0\n", [Severity.DAMAGE]),
    ("replication-offset-checkpoint", lambda _: b"x" * 100_000, [Severity.DAMAGE]),
]
"""A small file by its name, what is done to it, and what a check finds then."""


def write_node(folder: Path) -> Path:
    """Run a cluster of one node for a while, and return the node's log directory."""
    with Cluster(folder=folder) as cluster:
        servers = {"bootstrap.servers": cluster.bootstrap_servers}
        small = {"internal.segment.bytes": SEGMENT_BYTES}
        topics = [NewTopic(f"packed-{codec}", 2, 1, config=small) for codec in CODECS]
        admin: Any = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        for each in admin.create_topics(topics, request_timeout=TIMEOUT_S).values():
            each.result(TIMEOUT_S)
        for codec in CODECS:
            _produce(servers, codec)
        _consume_and_commit(servers)
    (found,) = {path.parent for path in folder.rglob("meta.properties")}
    return found


def _produce(servers: dict[str, str], codec: str) -> None:
    settings = {"compression.type": codec, "enable.idempotence": "true", "linger.ms": "1"}
    producer = Producer({**servers, **settings})
    for number in range(RECORDS):
        producer.produce(f"packed-{codec}", b"value %d " % number * 5, key=b"%d" % (number % 7))
        if number % 10 == 0:
            producer.flush(TIMEOUT_S)
    assert producer.flush(TIMEOUT_S) == 0


def _consume_and_commit(servers: dict[str, str]) -> None:
    consumer = Consumer({**servers, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe([f"packed-{codec}" for codec in CODECS])
    assert len(consumer.consume(RECORDS, timeout=TIMEOUT_S)) == RECORDS
    consumer.commit(asynchronous=False)
    consumer.close()


NODES: Final = (
    "dynamic-4.3.1/metadata/controller-1",
    "ladder-4.3.1/metadata/controller-1",
    "standalone-4.3.1/metadata/broker-11",
    "static-3.9.1/metadata/controller-1",
)
DAMAGES_OF_A_NODE: Final = int(os.environ.get("KVORUM_LOG_DAMAGES", "40"))
FLIPPED: Final = re.compile(r"bit \d of byte \d+ flipped")
REFUSED_BY: Final[Mapping[str, Callable[[bytes, Path], object]]] = MappingProxyType(
    {
        "meta.properties": lambda data, _: decode_meta_properties(data),
        "quorum-state": decode_quorum_state,
        "partition.metadata": decode_partition_metadata,
        "leader-epoch-checkpoint": decode_leader_epochs,
        **dict.fromkeys(OFFSET_CHECKPOINTS, partial(decode_offsets, advice="")),
    }
)
"""The readers of nodes by the names of the text files, which have no checksum of Kafka's."""


def written(contents: Contents, root: Path) -> Path:
    for name, data in contents.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return root


def has_silent_form(damage: Damage) -> bool:
    """Return whether no byte that is left needs to show this damage.

    - Files that a node may be without: indexes and producer snapshots, which a start makes again,
      a snapshot as long as the log has its records, bootstrap.checkpoint, and the flushed offset.
    - An index that ends earlier, or in the zeros of a file that is allocated in advance: a lookup
      begins further ahead in the segment.
    - Another offset in a time index, where that record has the same timestamp.
    - A missing mark of a clean shutdown, as of a node that crashed, or another epoch in it.
    - A text that the reader of a node takes: a comment, a date, a value that stands nowhere else.
    - The log's last batches, if the log ends before or within them as after an unfinished write.
    """
    path = Path(damage.file)
    is_gone = damage.how.startswith(("missing", "renamed"))
    if path.name in REFUSED_BY:
        return not is_gone and is_taken_by_a_node(path, damage.after[damage.file])
    if path.suffix in {".checkpoint", ".snapshot"} or path.name == FLUSHED_OFFSET_FILE:
        return is_gone
    if path.name == CLEAN_SHUTDOWN_FILE:
        return is_gone or broker_epoch_of(damage.after[damage.file]) is not None
    if path.suffix == ".timeindex" and FLIPPED.fullmatch(damage.how):
        return int(damage.how.split()[-2]) % TIME_ENTRY.size >= TIME_ENTRY.size // 3 * 2
    if path.suffix in {".index", ".timeindex"}:
        return damage.how.startswith(("missing", "cut to", "zeroed from", "renamed", "bytes"))
    return path.suffix == ".log" and damage.how.startswith(("cut to", "zeroed from"))


def is_taken_by_a_node(path: Path, data: bytes) -> bool:
    try:
        REFUSED_BY[path.name](data, path)
    except StorageError:
        return False
    return True


def damages(golden_sets: Path, generated: Path) -> Iterator[Damage]:
    for number, node in enumerate([*(golden_sets / node for node in NODES), generated]):
        yield from Vandal(number).damages(read_contents(node), DAMAGES_OF_A_NODE)


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_node(tmp_path_factory.mktemp("generated"))


def is_about(finding: Finding, damage: Damage, root: Path) -> bool:
    return str(finding.file.relative_to(root)) in damage.touched


@pytest.mark.parametrize("node", METADATA_NODES)
def test_what_a_real_node_left_is_sound(golden_sets: Path, node: str) -> None:
    report = check_paths([golden_sets / node])
    assert report.verdict in {Verdict.SOUND, Verdict.TORN_TAIL}, report.findings
    assert len(report.files) >= 5


def test_what_a_node_of_ours_left_is_sound(generated: Path) -> None:
    report = check_paths([generated])
    assert report.verdict is Verdict.SOUND, report.findings
    assert len(report.files) > 50


def test_a_cleanly_stopped_broker_gets_no_note(generated: Path) -> None:
    assert (generated / ".kafka_cleanshutdown").exists()
    assert check_paths([generated]).findings == ()


@pytest.mark.parametrize(("name", "change", "severities"), CHANGED_TEXTS)
def test_a_text_is_sound_if_a_node_starts_with_it(
    generated: Path,
    tmp_path: Path,
    name: str,
    change: Callable[[bytes], bytes],
    severities: list[Severity],
) -> None:
    contents = read_contents(generated)
    root = written(contents | {name: change(contents[name])}, tmp_path)
    found = [finding for finding in check_paths([root]).findings if finding.file == root / name]
    assert [finding.severity for finding in found] == severities
    assert all(len(finding.problem) < 250 for finding in found)


def test_a_batch_that_unpacks_to_much_is_sound(tmp_path: Path) -> None:
    options = BatchOptions(partition_leader_epoch=0, compression=Compression.ZSTD)
    data = build_batch([RecordData(bytes(2**23), None, 5)], options)
    assert damage_of(check_paths([written({f"topic-0/{0:020}.log": data}, tmp_path)])) == []


@pytest.mark.parametrize(
    ("epochs", "severities"), [((3, 3), []), ((3, 5), [Severity.NOTE]), ((3, 2), [Severity.DAMAGE])]
)
def test_an_epoch_that_a_running_node_has_not_stored_yet_is_not_damage(
    tmp_path: Path, epochs: tuple[int, int], severities: list[Severity]
) -> None:
    batches = [
        build_batch(
            [RecordData(b"abc", None, 5)],
            BatchOptions(base_offset=offset, partition_leader_epoch=epoch),
        )
        for offset, epoch in enumerate(epochs)
    ]
    files: Contents = {
        f"topic-0/{0:020}.log": b"".join(batches),
        "topic-0/leader-epoch-checkpoint": b"0\n1\n3 0\n",
    }
    report = check_paths([written(files, tmp_path)])
    found = [one for one in report.findings if one.file.name == "leader-epoch-checkpoint"]
    assert [one.severity for one in found] == severities


@pytest.mark.parametrize(
    ("variant", "rules"),
    [
        ("usual", []),
        ("bytes behind", []),
        ("linked blocks", [Rule.COMPRESSION]),
        ("skippable frame before", [Rule.COMPRESSION]),
        ("cut in the block", [Rule.RECORDS]),
    ],
)
def test_lz4_that_consumers_in_java_cannot_read_is_found(
    tmp_path: Path, variant: str, rules: list[Rule]
) -> None:
    options = BatchOptions(partition_leader_epoch=0)
    sound = build_batch([RecordData(b"abc", None, 5)], options)
    packed = lz4_variants(sound[HEADER_BYTES:])[variant]
    batch = bytearray(build_batch([RecordData(b"abc", None, 5)], options._replace(base_offset=1)))
    batch[HEADER_BYTES:] = packed
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    batch[CRC_START + 1] = Compression.LZ4
    batch[CRC_START - 4 : CRC_START] = crc32c(batch[CRC_START:]).to_bytes(4, "big")
    report = check_paths([written({f"topic-0/{0:020}.log": sound + batch}, tmp_path)])
    assert [finding.rule for finding in damage_of(report)] == rules
    assert {finding.position for finding in damage_of(report)} <= {len(sound)}


@pytest.mark.slow
@pytest.mark.timeout(120 + 5 * DAMAGES_OF_A_NODE)
def test_a_damaged_file_is_named_and_nothing_crashes(
    golden_sets: Path, generated: Path, tmp_path: Path, report: Measured
) -> None:
    silent: list[Damage] = []
    count = 0
    for count, damage in enumerate(damages(golden_sets, generated), 1):
        root = written(damage.after, tmp_path / str(count))
        try:
            checked = check_paths([root])
        except NothingToCheckError:
            assert damage.how.startswith("missing")
            continue
        about = [finding for finding in checked.findings if is_about(finding, damage, root)]
        if not about and checked.verdict is Verdict.SOUND:
            silent.append(damage)
    report(f"{count} damages, {len(silent)} of them of a kind that no reader can see")
    assert count == (len(NODES) + 1) * DAMAGES_OF_A_NODE
    told = [f"{damage.file}: {damage.how}" for damage in silent if not has_silent_form(damage)]
    assert told == []
    assert len(silent) < count / 8


@pytest.mark.slow
def test_every_flipped_bit_of_a_batch_is_found_at_its_place(
    golden_sets: Path, tmp_path: Path
) -> None:
    """One bit of each byte of a segment's first batches, header and records."""
    contents = read_contents(golden_sets / NODES[0])
    name = min(each for each in contents if each.endswith(".log"))
    data = contents[name]
    second = list(read_batches(data))[1]
    assert second.size > HEADER_SIZE
    for place in range(second.position + second.size):
        changed = bytearray(data)
        changed[place] ^= 1 << (place % 8)
        root = written(contents | {name: bytes(changed)}, tmp_path / "node")
        (damage, *_) = [one for one in damage_of(check_paths([root])) if one.file == root / name]
        assert damage.position is not None
        assert damage.position <= place


def damage_of(report: Report) -> list[Finding]:
    return [finding for finding in report.findings if finding.severity is Severity.DAMAGE]


def test_the_verdict_for_programs(
    golden_sets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    contents = read_contents(golden_sets / NODES[0])
    name = min(each for each in contents if each.endswith(".log"))
    data = bytearray(contents[name])
    data[100] ^= 1
    root = written(contents | {name: bytes(data)}, tmp_path)
    before = read_contents(root)
    assert main(["log", "check", "--json", str(root)]) == 1
    lines: list[dict[str, Any]] = [
        json.loads(line) for line in capsys.readouterr().out.split("\n")[:-1]
    ]
    assert {line["type"] for line in lines} == {"finding", "file", "overall"}
    found = next(line for line in lines if line["type"] == "finding")
    assert found["file"] == str(root / name)
    assert found["position"] <= 100
    assert found["meaning"]
    assert found["advice"]
    assert lines[-1]["verdict"] == "damaged"
    assert read_contents(root) == before, "nothing is written"


def test_a_sound_directory_ends_with_zero(
    golden_sets: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["log", "check", str(golden_sets / NODES[0])]) == 0
    assert "sound" in capsys.readouterr().out


def test_bytes_are_explained_field_by_field(
    golden_sets: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (segment, *_) = sorted((golden_sets / NODES[0]).glob("*/*.log"))
    assert main(["log", "check", "--explain", f"{segment}@17"]) == 0
    assert "crc" in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["/does/not/exist"], ["--explain", "no-position"]])
def test_wrong_usage(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "check", *words]) == 2
    assert capsys.readouterr().err
