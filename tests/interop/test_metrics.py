"""Metrics, compared with the beans of a real node that was set up the same way."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.interop.kafka.java import Java
from tests.interop.kafka.server import HEAP_MB, NodeFiles, free_ports, write_settings
from tests.interop.kafka.tools import ToolRunner
from tests.interop.kvorum_node import KvorumNode
from tests.interop.metrics_scrape import Page, scrape

from kvorum.node.metrics.absent import ABSENT
from kvorum.node.metrics.catalogue import all_metrics
from kvorum.node.metrics.names import OWN_DOMAIN, Kind, Metric

pytestmark = pytest.mark.interop
SOURCE = Path(__file__).parent / "java" / "MetricNames.java"
SETTLING_MS = 4_000
TIMEOUT_S = 120
OFTEN = {"metadata.log.max.snapshot.interval.ms": "1000"}
ATTRIBUTES = {Kind.GAUGE: "Value", Kind.TEXT: "Value", Kind.METER: "Count"}
HISTOGRAM_ATTRIBUTES = frozenset({"Count", "50thPercentile", "99thPercentile", "999thPercentile"})
METRICS = [metric for metric in all_metrics() if metric.domain != OWN_DOMAIN]


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of a bean of Kafka's."""

    domain: str
    keys: tuple[tuple[str, str], ...]
    name: str
    kind: str
    text: str

    @property
    def type(self) -> str:
        """The type of the bean."""
        return dict(self.keys).get("type", "")

    @property
    def metric_name(self) -> str:
        """What the metric is called: as the bean, or as its attribute where that has no name."""
        return dict(self.keys).get("name", self.name)

    @property
    def labels(self) -> dict[str, str]:
        """The other keys of the bean."""
        return {key: value for key, value in self.keys if key not in {"type", "name"}}


def read(line: str) -> Attribute:
    bean, name, kind, text = line.split("\t", 3)
    domain, _, words = bean.partition(":")
    pairs = (word.partition("=") for word in words.split(","))
    return Attribute(domain, tuple((key, value) for key, _, value in pairs), name, kind, text)


@pytest.fixture(scope="module")
def beans(
    java: Java, kafka_tools: ToolRunner, tmp_path_factory: pytest.TempPathFactory
) -> list[Attribute]:
    """Every attribute of a real combined node that has just started."""
    folder = tmp_path_factory.mktemp("metrics")
    files = NodeFiles(folder / "server.properties", folder / "data")
    broker_port, controller_port = free_ports(2)
    write_settings(files, broker_port, controller_port, OFTEN)
    cluster_id = kafka_tools.run("kafka-storage", "random-uuid").stdout.strip()
    identity = ["--cluster-id", cluster_id, "--standalone", "--config", str(files.properties)]
    assert kafka_tools.run("kafka-storage", "format", *identity).exit_code == 0
    classes = java.compile(SOURCE)
    arguments = [str(files.properties), str(SETTLING_MS)]
    command = java.command("MetricNames", *arguments, heap_mb=HEAP_MB, classes=classes)
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    return [read(line) for line in done.stdout.splitlines() if line.count("\t") >= 3]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """What one of our nodes says in the same place."""
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    folder = tmp_path_factory.mktemp("our-metrics")
    with KvorumNode(folder, {**OFTEN, "kvorum.metrics.listener": address}):
        return scrape(address)


def is_of(attribute: Attribute, metric: Metric) -> bool:
    """Tell whether an attribute is what the metric is taken for."""
    if metric.is_attribute:
        is_named = "name" not in dict(attribute.keys) and attribute.name == metric.name
    elif metric.kind is Kind.HISTOGRAM:
        is_named = attribute.name in HISTOGRAM_ATTRIBUTES
    else:
        is_named = attribute.name == ATTRIBUTES[metric.kind]
    return (
        is_named
        and (attribute.domain, attribute.type) == (metric.domain, metric.type)
        and attribute.metric_name == metric.name
        and set(attribute.labels) == set(metric.labels)
    )


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.exported_name)
def test_kafka_has_everything_that_bears_its_name(beans: list[Attribute], metric: Metric) -> None:
    found = [attribute for attribute in beans if is_of(attribute, metric)]
    assert found
    assert {attribute.kind == "String" for attribute in found} == {metric.kind is Kind.TEXT}
    if metric.kind is Kind.HISTOGRAM:
        assert {attribute.name for attribute in found} == HISTOGRAM_ATTRIBUTES


def test_the_rest_of_what_kafka_measures_is_listed_with_a_reason(beans: list[Attribute]) -> None:
    ours = {(metric.domain, metric.type, metric.name) for metric in METRICS}
    # The logs of partitions have beans whose type is that of the log, other beans none.
    theirs = {(each.domain, each.type, each.metric_name) for each in beans if each.type} - ours
    unused = set(ABSENT)
    for domain, bean_type, name in sorted(theirs):
        reasons = [
            absent
            for absent in ABSENT
            if (absent.domain, absent.type) == (domain, bean_type)
            and (not absent.names or name in absent.names)
        ]
        assert reasons, (domain, bean_type, name)
        unused.difference_update(reasons)
    assert unused == set()


# What a node that has just started has in common with any other.
SAME = (
    "kafka_controller_KafkaController_ActiveControllerCount",
    "kafka_controller_KafkaController_ActiveBrokerCount",
    "kafka_controller_KafkaController_FencedBrokerCount",
    "kafka_controller_KafkaController_ControlledShutdownBrokerCount",
    "kafka_controller_KafkaController_GlobalTopicCount",
    "kafka_controller_KafkaController_GlobalPartitionCount",
    "kafka_controller_KafkaController_OfflinePartitionsCount",
    "kafka_controller_KafkaController_PreferredReplicaImbalanceCount",
    "kafka_controller_KafkaController_IgnoredStaticVoters",
    "kafka_controller_KafkaController_MetadataErrorCount",
    "kafka_controller_KafkaController_EventQueueOperationsTimedOutCount",
    "kafka_controller_KafkaController_NewActiveControllersCount",
    "kafka_controller_KafkaController_BrokerRegistrationState",
    "kafka_controller_ControllerStats_UncleanLeaderElections",
    "kafka_controller_ControllerStats_ElectionFromEligibleLeaderReplicas",
    "kafka_server_MetadataLoader_CurrentMetadataVersion",
    "kafka_server_MetadataLoader_CurrentControllerId",
    "kafka_server_MetadataLoader_HandleLoadSnapshotCount",
    "kafka_server_MetadataLoader_FinalizedLevel",
    "kafka_server_broker_metadata_metrics_ignored_static_voters",
    "kafka_server_node_metrics_maximum_supported_level",
    "kafka_server_node_metrics_minimum_supported_level",
    "kafka_server_KafkaServer_BrokerState",
    "kafka_server_raft_metrics_current_leader",
    "kafka_server_raft_metrics_current_vote",
    "kafka_server_raft_metrics_current_epoch",
    "kafka_server_raft_metrics_log_end_epoch",
    "kafka_server_raft_metrics_number_unknown_voter_connections",
    "kafka_server_raft_metrics_number_of_voters",
    "kafka_server_raft_metrics_number_of_observers",
    "kafka_server_raft_metrics_uncommitted_voter_change",
    "kafka_server_raft_metrics_election_latency_avg",
    "kafka_server_raft_metrics_election_latency_max",
    "kafka_server_raft_metrics_fetch_records_rate",
)


def theirs_of(beans: list[Attribute], metric: Metric) -> Mapping[frozenset[tuple[str, str]], float]:
    return {
        frozenset((key.replace("-", "_"), value) for key, value in each.labels.items()): float(
            each.text
        )
        for each in beans
        if is_of(each, metric)
    }


@pytest.mark.parametrize("name", SAME)
def test_a_new_node_has_the_same_values(beans: list[Attribute], page: Page, name: str) -> None:
    (metric,) = [metric for metric in METRICS if metric.exported_name == name]
    sample = f"{name}_total" if metric.kind is Kind.METER else name
    ours = {labels: value for (known, labels), value in page.samples.items() if known == sample}
    theirs = theirs_of(beans, metric)
    assert {key: str(value) for key, value in ours.items()} == {
        key: str(value) for key, value in theirs.items()
    }


def test_every_metric_of_a_combined_node_is_on_its_page(page: Page) -> None:
    endings = {Kind.METER: "_total", Kind.HISTOGRAM: "_count", Kind.TEXT: "_info", Kind.GAUGE: ""}
    wanted = {metric.exported_name + endings[metric.kind] for metric in all_metrics()}
    assert wanted - page.names == set()


def test_offsets_and_times_agree_with_each_other(beans: list[Attribute], page: Page) -> None:
    controller = "kafka_controller_KafkaController_"
    raft = "kafka_server_raft_metrics_"
    end_offset = page.value(f"{raft}log_end_offset")
    assert page.value(f"{raft}high_watermark") <= end_offset
    assert page.value(f"{controller}LastCommittedRecordOffset") < end_offset
    assert page.value(f"{controller}LastAppliedRecordOffset") == end_offset - 1
    assert 0 <= page.value(f"{controller}LastAppliedRecordLagMs") < 60_000
    assert page.value(f"{controller}TimeSinceLastHeartbeatReceivedMs", broker="1") < 60_000
    assert not math.isnan(page.value(f"{raft}commit_latency_avg"))
    assert 0 < page.value("kafka_controller_ControllerEventManager_AvgIdleRatio") <= 1
    # The same relations hold in Kafka: what is counted from is the same there.
    named = [each for each in beans if each.name in {"Value", each.metric_name}]
    theirs = {each.metric_name: each.text for each in named}
    assert int(theirs["LastAppliedRecordOffset"]) < int(theirs["log-end-offset"])
    assert int(theirs["last-applied-record-offset"]) <= int(theirs["log-end-offset"])
