"""``kvorum dump-log`` and kafka-dump-log on the same files: golden, damaged, just written."""

import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer
from tests.interop.broker_cluster import OlderBrokers, RunBrokers
from tests.interop.clients.confluent import end_transaction, send, transactional_producer
from tests.support.dump_log import decoder_of, dump, log_files
from tests.support.fixtures import JarsOf
from tests.support.kafka.fetch_jars import OLDEST_NODE, REFERENCE_RELEASE
from tests.support.kafka.java import Java, ToolRunner
from tests.support.waiting import PATIENCE_S

from kvorum.inspection.decoding.files import file_objects, files_below
from kvorum.inspection.log_check.check import check_paths
from kvorum.inspection.log_check.findings import Verdict

METADATA_LOG = "dynamic-4.3.1/metadata/controller-1/__cluster_metadata-0"
DATA_LOG = "dynamic-4.3.1/data/emails-tx-0"


def check(
    tools: ToolRunner, capture: pytest.CaptureFixture[str], files: str, *options: str
) -> None:
    ours = dump(capture, "--files", files, *options)
    theirs = tools.run("kafka-dump-log", "--files", files, *options)
    assert ours.stdout == theirs.stdout, (files, options)
    assert ours.stderr == theirs.stderr, (files, options)
    assert ours.exit_code == theirs.exit_code


@pytest.mark.parametrize(
    "name", ["dynamic-4.3.1", "static-3.9.1", "ladder-4.3.1", "standalone-4.3.1", "legacy-formats"]
)
def test_every_golden_file_is_printed_as_by_the_reference_release(
    golden_sets: Path, name: str, kafka_tools: ToolRunner, capsys: pytest.CaptureFixture[str]
) -> None:
    files = log_files(golden_sets / name)
    assert len(files) >= 10
    for file in files:
        check(kafka_tools, capsys, str(file), decoder_of(file))


@pytest.mark.parametrize(
    "options",
    [
        ("--deep-iteration",),
        ("--print-data-log",),
        ("--print-data-log", "--skip-record-metadata"),
        ("--cluster-metadata-decoder", "--skip-record-metadata"),
        ("--max-bytes", "1000"),
        ("--verify-index-only",),
        ("--index-sanity-check",),
    ],
)
def test_options_do_what_kafkas_do(
    golden_sets: Path,
    options: tuple[str, ...],
    kafka_tools: ToolRunner,
    capsys: pytest.CaptureFixture[str],
) -> None:
    is_metadata_only = "--cluster-metadata-decoder" in options
    for folder in (METADATA_LOG,) if is_metadata_only else (METADATA_LOG, DATA_LOG):
        for file in log_files(golden_sets / folder):
            check(kafka_tools, capsys, str(file), *options)


def flip(position: int) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        path = next(iter(sorted(folder.glob("*.log"))))
        data = bytearray(path.read_bytes())
        data[position] ^= 1
        path.write_bytes(data)

    return spoil


def cut(size: int) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        path = next(iter(sorted(folder.glob("*.log"))))
        path.write_bytes(path.read_bytes()[:-size])

    return spoil


@pytest.mark.parametrize(
    "spoil",
    [flip(21), flip(30), flip(70), cut(1), cut(30), cut(60)],
    ids=["attributes", "time", "record", "one byte", "thirty bytes", "sixty bytes"],
)
@pytest.mark.parametrize("source", [METADATA_LOG, DATA_LOG])
def test_damaged_logs_are_shown_alike(
    golden_sets: Path,
    tmp_path: Path,
    source: str,
    spoil: Callable[[Path], None],
    kafka_tools: ToolRunner,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(golden_sets / source, tmp_path / "log")
    spoil(tmp_path / "log")
    for file in sorted((tmp_path / "log").glob("*.log")):
        check(kafka_tools, capsys, str(file))


def test_several_files_are_printed_one_after_the_other(
    golden_sets: Path, kafka_tools: ToolRunner, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(path) for path in log_files(golden_sets / METADATA_LOG) if path.suffix != ".log"]
    check(kafka_tools, capsys, ",".join([*files, "other.txt"]))


SUFFIXES = (".log", ".checkpoint", ".index", ".timeindex", ".txnindex", ".snapshot")
SEEDS = range(8)
FILES_PER_SEED = 40
# Damaged files that Kafka's tool reads to their end and ours does not.
GIVEN_UP_MAX = 3
# Each side says in its own words why a snapshot of producers cannot be read.
OWN_WORDS = "Snapshot failed schema validation: "
NULL_SIZE = re.compile(r"Size: -[0-9]+")


def damaged(data: bytes, randomness: random.Random) -> bytes:
    """Flip bits, as a rule; else cut the file or let something follow."""
    changed = bytearray(data)
    kind = randomness.random()
    if kind < 0.7:
        for _ in range(randomness.choice([1, 1, 1, 2, 5])):
            changed[randomness.randrange(len(changed))] ^= 1 << randomness.randrange(8)
    elif kind < 0.85:
        del changed[randomness.randrange(len(changed)) :]
    else:
        changed += randomness.randbytes(randomness.randrange(1, 80))
    return bytes(changed)


def spoiled_copy(golden_sets: Path, folder: Path, randomness: random.Random) -> Path:
    """Copy a segment with its neighbours, damage one of the files, and return that."""
    files = [
        path
        for path in sorted(golden_sets.rglob("*"))
        if path.suffix in SUFFIXES and 0 < path.stat().st_size < 1_000_000
    ]
    source = randomness.choice(files)
    target = folder / source.parent.name
    shutil.copytree(source.parent, target, ignore=shutil.ignore_patterns("dumps"))
    file = target / source.name
    file.write_bytes(damaged(source.read_bytes(), randomness))
    return file


def shown(text: str) -> list[str]:
    """Return the lines; null of format 0 or 1 has any negative length, which ours prints as -1."""
    return NULL_SIZE.sub("Size: -1", text).splitlines()


def lines_but_own_words(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith(OWN_WORDS)]


@pytest.mark.parametrize("seed", SEEDS)
def test_damaged_files_are_shown_alike(
    golden_sets: Path,
    tmp_path: Path,
    seed: int,
    kafka_tools: ToolRunner,
    capsys: pytest.CaptureFixture[str],
) -> None:
    randomness = random.Random(seed)
    given_up = 0
    for number in range(FILES_PER_SEED):
        arguments = ["--files", str(spoiled_copy(golden_sets, tmp_path / str(number), randomness))]
        arguments += randomness.choice([[], ["--deep-iteration"], ["--print-data-log"]])
        ours = dump(capsys, *arguments)
        theirs = kafka_tools.run("kafka-dump-log", *arguments)
        if ours.exit_code == 0:
            assert theirs.exit_code == 0, (arguments, theirs.stderr)
            assert shown(ours.stdout) == shown(theirs.stdout), arguments
            assert lines_but_own_words(ours.stderr) == lines_but_own_words(theirs.stderr)
        else:
            given_up += ours.exit_code - theirs.exit_code
            # Kafka goes on where it does not look: formats to come, text that is not UTF-8. Within
            # the batch where both end, either may get further.
            first, second = shown(ours.stdout), shown(theirs.stdout)[: -theirs.exit_code or None]
            common = min(len(first) - 1, len(second))
            assert first[:common] == second[:common], arguments
            assert ours.stderr.count("\n") == 1, "one line"
        shutil.rmtree(tmp_path / str(number))
    assert given_up <= GIVEN_UP_MAX


CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
TOPIC: Final = "fresh"
RECORDS: Final = 60
ALONE: Final = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "log.index.interval.bytes": "200",
}
RELEASES: Final = (REFERENCE_RELEASE, OLDEST_NODE)


@pytest.fixture(params=RELEASES)
def written(
    request: pytest.FixtureRequest, java: Java, kafka_jars: JarsOf, run_brokers: RunBrokers
) -> Path:
    """The folder of a real broker that carried records of all kinds, and was stopped."""
    older = None
    if request.param == OLDEST_NODE:
        older = OlderBrokers(Java(java.executable, kafka_jars(OLDEST_NODE)), "3.9")
    with run_brokers(brokers=1, settings=ALONE, older=older) as cluster:
        (broker,) = cluster.brokers.values()
        cluster.tool("kafka-topics", "--create", "--topic", TOPIC, "--partitions", "2")
        cluster.wait_for_partitions(TOPIC, leaders={broker.node_id}, isr={broker.node_id})
        for codec in CODECS:
            _produce(broker.address, codec)
        _produce_in_transactions(broker.address)
        _consume(broker.address)
        broker.stop()
        return broker.folder


def _produce(servers: str, codec: str) -> None:
    headers = [("codec", codec.encode()), ("empty", None)]
    records = [
        {
            "value": b"value %d " % number * 9,
            "key": b"%d" % number,
            "headers": headers if number % 9 == 0 else [],
        }
        for number in range(RECORDS)
    ]
    send(servers, TOPIC, records, compression_type=codec, enable_idempotence=True)


def _produce_in_transactions(servers: str) -> None:
    producer = transactional_producer(servers, "fresh-transactions")
    for number in range(4):
        producer.begin_transaction()
        producer.produce(TOPIC, b"in transaction %d" % number)
        # A transaction that is aborted before its records are sent has none in the log.
        producer.flush(PATIENCE_S)
        end_transaction(producer, is_committed=number % 2 == 0)


def _consume(servers: str) -> None:
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "fresh-group", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([TOPIC])
    assert len(consumer.consume(RECORDS, timeout=PATIENCE_S)) == RECORDS
    consumer.commit(asynchronous=False)
    consumer.close()


@pytest.mark.timeout(300)
def test_files_that_a_real_broker_just_wrote(
    written: Path, kafka_tools: ToolRunner, capsys: pytest.CaptureFixture[str]
) -> None:
    files = log_files(written)
    assert {file.suffix for file in files} >= {".log", ".index", ".timeindex", ".snapshot"}
    for file in files:
        options = ("--files", str(file), decoder_of(file))
        ours = dump(capsys, *options)
        theirs = kafka_tools.run("kafka-dump-log", *options)
        assert ours.stdout == theirs.stdout, file
        assert ours.exit_code == theirs.exit_code, file
    report = check_paths([written])
    assert report.verdict is Verdict.SOUND, report.findings
    objects = [found for file in files_below(written) for found in file_objects(file)]
    assert not [found for found in objects if found["type"] == "damage" or "problem" in found]
    assert {found.get("controlType") for found in objects} >= {"COMMIT", "ABORT", "LEADER_CHANGE"}
