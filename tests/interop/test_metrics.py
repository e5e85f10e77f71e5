"""Metrics, compared with the beans of a real node that was set up the same way."""

import math
import subprocess
from typing import Final, NamedTuple

import pytest
from tests.interop.measured_share_group import (
    BURIED_GROUP,
    DEAD_LETTER_METERS,
    GROUP,
    LAST_SNAPSHOT,
    LOST_GROUP,
    RECORD_COUNT,
    SHARE_STATE_SETTINGS,
    bury_records,
    share_records,
)
from tests.interop.metric_beans import (
    HISTOGRAM_ATTRIBUTES,
    READY,
    Attribute,
    attribute_values,
    attributes_of,
    is_of,
    values_by_labels,
)
from tests.support.kafka.java import Java, ToolRunner
from tests.support.metrics_scrape import Page, scrape
from tests.support.node import CLUSTER_ID, COMBINED_HEAP_MB, LEVELS_OF_OURS, STANDALONE, Node
from tests.support.played_broker import (
    HEARTBEAT_VERSION,
    REGISTRATION_VERSION,
    heartbeat,
    registration,
)
from tests.support.ports import free_ports
from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, fetch, produce, values
from tests.support.topics import wait_until_led
from tests.support.waiting import PATIENCE_S

from kvorum.node.metrics.absent import ABSENT
from kvorum.node.metrics.catalogue import KIP_853, all_metrics
from kvorum.node.metrics.names import OWN_DOMAIN, Kind, Metric
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.broker_heartbeat import BrokerHeartbeatResponse
from kvorum.wire.messages.broker_registration import BrokerRegistrationResponse
from kvorum.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kvorum.wire.records import RecordData, build_batch

Assignment = CreateTopicsRequest.CreatableReplicaAssignment
CreatableTopic = CreateTopicsRequest.CreatableTopic
Config = CreateTopicsRequest.CreatableTopicConfig
pytestmark = pytest.mark.sample

SETTLING_MS = 1_000
TOPIC = "lone"
"""The topic whose first partition is on the node's own broker."""
PLAYED = (100, 101, 102)
"""The last of them is never unfenced."""
APPLIED_LATER = frozenset({"PartitionCount", "LeaderCount"})
"""The counts that follow the metadata: the replica manager applies a change after it is read."""
SETTINGS = {"metadata.log.max.snapshot.interval.ms": "1000", **SHARE_STATE_SETTINGS}
OWN_BROKER: Final = 1
METRICS = [
    metric
    for metric in all_metrics()
    if metric.domain != OWN_DOMAIN and metric not in KIP_853.metrics
]


def live_through(node: Node) -> None:
    """Have played brokers come and go, leaders be elected in all ways, and records sent."""
    with RawClient(node.controller) as client:
        epochs = {
            broker_id: client.ask(
                registration(cluster_id=CLUSTER_ID, broker_id=broker_id),
                BrokerRegistrationResponse,
                REGISTRATION_VERSION,
            ).broker_epoch
            for broker_id in PLAYED
        }

        def beat(broker_id: int, *, want_fence: bool) -> None:
            request = heartbeat(broker_epoch=epochs[broker_id], broker_id=broker_id)
            request.want_fence = want_fence
            response = client.ask(request, BrokerHeartbeatResponse, HEARTBEAT_VERSION)
            assert (response.error_code, response.is_fenced) == (0, want_fence)

        first, second, never = PLAYED
        beat(first, want_fence=False)
        beat(second, want_fence=False)
        created = client.ask(topics_on(first, second), CreateTopicsResponse, 7)
        assert [topic.error_code for topic in created.topics] == [0] * 4
        beat(second, want_fence=True)
        beat(first, want_fence=True)
        beat(second, want_fence=False)
        assert never in epochs
    with RawClient(node.broker) as client:
        wait_until_led(client, TOPIC)
        send_records(client)


def send_records(client: RawClient) -> None:
    """Send records that are taken, that are too large, and that are wrong; fetch the first."""
    late = build_batch([RecordData(b"late", None, 2**61, ())])
    assert produce(client, TOPIC, batch(b"x" * 1000)).error_code == ErrorCode.NONE
    assert produce(client, TOPIC, batch(b"y")).error_code == ErrorCode.NONE
    assert produce(client, TOPIC, batch(b"z" * 2**21)).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert produce(client, TOPIC, bytes(late)).error_code == ErrorCode.INVALID_TIMESTAMP
    assert len(values(fetch(client, TOPIC, 0))) == 2


def topics_on(first: int, second: int) -> CreateTopicsRequest:
    """Return topics that end up with another leader, with an unclean one, and without one."""

    def topic(name: str, *replicas: tuple[int, ...], **configs: str) -> CreatableTopic:
        return CreatableTopic(
            name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[Assignment(index, list(ids)) for index, ids in enumerate(replicas)],
            configs=[Config(key.replace("_", "."), value) for key, value in configs.items()],
        )

    pair = (first, second)
    return CreateTopicsRequest(
        topics=[
            topic("eligible", pair, min_insync_replicas="2"),
            topic("unclean", pair, unclean_leader_election_enable="true"),
            topic("plain", (1, first), (first, 1), (second, first)),
            topic("lone", (1,), (first,)),
        ],
        timeout_ms=10_000,
    )


class Lives(NamedTuple):
    """The attributes of a node before share groups come to it, and with these groups."""

    before: list[Attribute]
    shared: list[Attribute]


@pytest.fixture(scope="module")
def lives(java: Java, kafka_tools: ToolRunner, tmp_path_factory: pytest.TempPathFactory) -> Lives:
    """Every attribute of a real combined node that has lived through a little."""
    folder = tmp_path_factory.mktemp("metrics")
    node = Node(folder, SETTINGS, java=java).format(
        (*STANDALONE, *LEVELS_OF_OURS), tools=kafka_tools
    )
    arguments = [str(node.properties), str(SETTLING_MS)]
    command = java.program("MetricNames", *arguments, heap_mb=COMBINED_HEAP_MB)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == READY
            live_through(node)
            before = attributes_of(process)
            with RawClient(node.broker) as member:
                share_records(OWN_BROKER, member, TOPIC)
                bury_records(OWN_BROKER, member, TOPIC)
                shared = attributes_of(process)
            process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    return Lives(before, shared)


@pytest.fixture(scope="module")
def beans(lives: Lives) -> list[Attribute]:
    """Every attribute of the real node before there is a share group."""
    return lives.before


@pytest.fixture(scope="module")
def shared_beans(lives: Lives) -> list[Attribute]:
    """Every attribute of the real node with share groups."""
    return lives.shared


class Pages(NamedTuple):
    """The metrics of our node at the same two times."""

    before: Page
    shared: Page


@pytest.fixture(scope="module")
def pages(beans: list[Attribute], tmp_path_factory: pytest.TempPathFactory) -> Pages:
    """The metrics of one of our nodes in the same place, once it hosts and leads as many."""
    counted_there = {
        each.metric_name: float(each.text)
        for each in beans
        if each.type == "ReplicaManager" and each.metric_name in APPLIED_LATER
    }
    assert counted_there.keys() == APPLIED_LATER
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    folder = tmp_path_factory.mktemp("our-metrics")
    with Node(folder, {**SETTINGS, "kvorum.metrics.listener": address}).format() as node:
        live_through(node)

        def counts_everything() -> Page | None:
            found = scrape(address)
            applied = {
                found.value("kafka_controller_KafkaController_LastAppliedRecordOffset"),
                found.value("kafka_server_broker_metadata_metrics_last_applied_record_offset"),
            }
            end = found.value("kafka_server_raft_metrics_log_end_offset")
            counted = {
                name: found.value(f"kafka_server_ReplicaManager_{name}") for name in APPLIED_LATER
            }
            return found if applied == {end - 1} and counted == counted_there else None

        # The last commit is counted a moment later; partitions are hosted and led after that.
        before = node.process.wait_until(
            counts_everything, "controller and broker count all that is committed"
        )
        with RawClient(node.broker) as member:
            share_records(OWN_BROKER, member, TOPIC)
            bury_records(OWN_BROKER, member, TOPIC)
            return Pages(before, scrape(address))


@pytest.fixture(scope="module")
def page(pages: Pages) -> Page:
    """The metrics of our node before there is a share group."""
    return pages.before


@pytest.fixture(scope="module")
def shared_page(pages: Pages) -> Page:
    """The metrics of our node with share groups."""
    return pages.shared


def metric_named(name: str) -> Metric:
    """Return the one metric that is exported by a name."""
    (metric,) = [one for one in METRICS if one.exported_name == name]
    return metric


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.exported_name)
def test_kafka_has_everything_that_bears_its_name(
    shared_beans: list[Attribute], metric: Metric
) -> None:
    found = [attribute for attribute in shared_beans if is_of(attribute, metric)]
    assert found
    assert {attribute.kind == "String" for attribute in found} == {metric.kind is Kind.TEXT}
    if metric.kind is Kind.HISTOGRAM:
        assert {attribute.name for attribute in found} == HISTOGRAM_ATTRIBUTES


def test_the_rest_of_what_kafka_measures_is_listed_with_a_reason(
    shared_beans: list[Attribute],
) -> None:
    ours = {(metric.domain, metric.type, metric.name) for metric in METRICS}
    # The logs of partitions have beans whose type is that of the log, other beans none.
    theirs = {
        (each.domain, each.type, each.metric_name) for each in shared_beans if each.type
    } - ours
    unused, unlisted = set(ABSENT), list[tuple[str, str, str]]()
    for domain, bean_type, name in sorted(theirs):
        reasons = [
            absent
            for absent in ABSENT
            if (absent.domain, absent.type) == (domain, bean_type)
            and (not absent.names or name in absent.names)
        ]
        unused.difference_update(reasons)
        if not reasons:
            unlisted.append((domain, bean_type, name))
    assert unlisted == []
    assert unused == set()


@pytest.mark.parametrize("kind", ["consumer", "share"])
def test_the_states_of_groups_have_kafkas_names(
    beans: list[Attribute], page: Page, kind: str
) -> None:
    theirs = {each.labels["state"] for each in beans if each.name == f"{kind}-group-count"}
    counted = f"kafka_server_group_coordinator_metrics_{kind}_group_count"
    labels = [labels for name, labels in page.samples if name == counted]
    assert theirs == {dict(pairs)["state"] for pairs in labels}
    assert {page.value(counted, state=state) for state in theirs} == {0}


# Metrics that two nodes of the same history have in common, by what their names begin with.
SAME = {
    "kafka_controller_KafkaController_": (
        *("ActiveControllerCount", "ActiveBrokerCount", "FencedBrokerCount"),
        *("ControlledShutdownBrokerCount", "GlobalTopicCount", "GlobalPartitionCount"),
        *("OfflinePartitionsCount", "PreferredReplicaImbalanceCount", "IgnoredStaticVoters"),
        *("MetadataErrorCount", "EventQueueOperationsTimedOutCount", "NewActiveControllersCount"),
        "BrokerRegistrationState",
    ),
    "kafka_controller_ControllerStats_": (
        "UncleanLeaderElections",
        "ElectionFromEligibleLeaderReplicas",
    ),
    "kafka_server_MetadataLoader_": (
        *("CurrentMetadataVersion", "CurrentControllerId", "HandleLoadSnapshotCount"),
        "FinalizedLevel",
    ),
    "kafka_server_node_metrics_": ("maximum_supported_level", "minimum_supported_level"),
    "kafka_server_raft_metrics_": (
        *("current_leader", "current_vote", "current_epoch", "log_end_epoch"),
        *("number_unknown_voter_connections", "number_of_voters", "number_of_observers"),
        *("uncommitted_voter_change", "election_latency_avg", "election_latency_max"),
        "fetch_records_rate",
    ),
    "kafka_server_": ("broker_metadata_metrics_ignored_static_voters", "KafkaServer_BrokerState"),
}


@pytest.mark.parametrize(
    "name", [f"{prefix}{name}" for prefix, names in SAME.items() for name in names]
)
def test_nodes_with_the_same_past_have_the_same_values(
    beans: list[Attribute], page: Page, name: str
) -> None:
    metric = metric_named(name)
    sample = f"{name}_total" if metric.kind is Kind.METER else name
    ours = {labels: value for (known, labels), value in page.samples.items() if known == sample}
    theirs = values_by_labels(beans, metric)
    assert {key: str(value) for key, value in ours.items()} == {
        key: str(value) for key, value in theirs.items()
    }


LONE = {"topic": TOPIC}
LONE_LOG = {"topic": TOPIC, "partition": "0"}
# Counts of the same records on both sides.
COUNTED: list[tuple[str, dict[str, str]]] = [
    *(
        (f"kafka_server_BrokerTopicMetrics_{name}", labels)
        for name in (
            *("MessagesIn", "BytesIn", "BytesOut", "BytesRejected"),
            *("FailedProduceRequests", "TotalProduceRequests", "TotalFetchRequests"),
        )
        for labels in ({}, LONE)
    ),
    ("kafka_server_BrokerTopicMetrics_FailedFetchRequests", {}),
    ("kafka_server_BrokerTopicMetrics_ReplicationBytesIn", {}),
    ("kafka_server_BrokerTopicMetrics_ReplicationBytesOut", {}),
    ("kafka_network_RequestMetrics_Requests", {"request": "Produce", "version": "9"}),
    ("kafka_network_RequestMetrics_Requests", {"request": "Fetch", "version": "12"}),
    ("kafka_network_RequestMetrics_Requests", {"request": "FetchConsumer", "version": "12"}),
    ("kafka_network_RequestMetrics_Errors", {"request": "Produce", "error": "NONE"}),
    ("kafka_network_RequestMetrics_Errors", {"request": "Produce", "error": "INVALID_TIMESTAMP"}),
    ("kafka_network_RequestMetrics_Errors", {"request": "Produce", "error": "MESSAGE_TOO_LARGE"}),
    ("kafka_network_RequestMetrics_Errors", {"request": "Fetch", "error": "NONE"}),
    *(
        (f"kafka_server_ReplicaManager_{name}", {})
        for name in (
            *("LeaderCount", "PartitionCount", "OfflineReplicaCount", "UnderReplicatedPartitions"),
            *("UnderMinIsrPartitionCount", "AtMinIsrPartitionCount", "ReassigningPartitions"),
            *("IsrShrinks", "IsrExpands", "FailedIsrUpdates"),
            *("ProducerIdCount", "PartitionsWithLateTransactionsCount"),
        )
    ),
    ("kafka_server_ReplicaFetcherManager_MaxLag", {"clientId": "Replica"}),
    ("kafka_server_ReplicaFetcherManager_FailedPartitionsCount", {"clientId": "Replica"}),
    *(
        (f"kafka_server_DelayedOperationPurgatory_{name}", {"delayedOperation": kind})
        for name in ("NumDelayedOperations", "PurgatorySize")
        for kind in ("Produce", "Fetch", "DeleteRecords")
    ),
    ("kafka_server_FetchSessionCache_NumIncrementalFetchSessions", {}),
    ("kafka_server_FetchSessionCache_NumIncrementalFetchPartitionsCached", {}),
    ("kafka_server_FetchSessionCache_IncrementalFetchSessionEvictions", {}),
    *(
        (f"kafka_log_Log_{name}", LONE_LOG)
        for name in ("Size", "NumLogSegments", "LogStartOffset", "LogEndOffset")
    ),
    ("kafka_log_LogManager_OfflineLogDirectoryCount", {}),
    *(
        (f"kafka_coordinator_group_GroupMetadataManager_Num{name}", {})
        for name in ("Offsets", "Groups")
    ),
    *(
        ("kafka_server_group_coordinator_metrics_group_count", {"protocol": protocol})
        for protocol in ("classic", "consumer", "share")
    ),
    *(
        (f"kafka_coordinator_transaction_TransactionMarkerChannelManager_{name}QueueSize", {})
        for name in ("UnknownDestination", "LogAppendRetry")
    ),
    ("kafka_server_AddPartitionsToTxnManager_VerificationFailureRate", {}),
]


@pytest.mark.parametrize(("name", "labels"), COUNTED, ids=str)
def test_the_same_records_and_requests_are_counted_alike(
    beans: list[Attribute], page: Page, name: str, labels: dict[str, str]
) -> None:
    compare(beans, page, name, labels)


def compare(beans: list[Attribute], page: Page, name: str, labels: dict[str, str]) -> None:
    """Demand the same value on both sides."""
    (metric,) = [
        one for one in METRICS if one.exported_name == name and set(one.labels) == set(labels)
    ]
    sample = f"{name}_total" if metric.kind is Kind.METER else name
    ours = page.samples[sample, frozenset(labels.items())]
    assert ours == values_by_labels(beans, metric)[frozenset(labels.items())]


def test_requests_took_time(page: Page) -> None:
    name = "kafka_network_RequestMetrics_"
    total = page.value(f"{name}TotalTimeMs_sum", request="Produce")
    local, remote, sent = (
        page.value(f"{name}{part}TimeMs_sum", request="Produce")
        for part in ("Local", "Remote", "ResponseSend")
    )
    assert min(local, sent) > 0
    assert local + remote + sent == pytest.approx(total, rel=0.01)
    assert page.value(f"{name}RequestBytes_sum", request="Produce") > 2**21


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("KafkaController_ActiveBrokerCount", 2),
        ("KafkaController_FencedBrokerCount", 2),
        ("KafkaController_GlobalTopicCount", 4),
        ("KafkaController_GlobalPartitionCount", 7),
        ("KafkaController_OfflinePartitionsCount", 2),
        ("KafkaController_PreferredReplicaImbalanceCount", 5),
        ("ControllerStats_UncleanLeaderElections_total", 1),
        ("ControllerStats_ElectionFromEligibleLeaderReplicas_total", 1),
    ],
)
def test_there_was_something_to_count(page: Page, name: str, value: float) -> None:
    assert page.value(f"kafka_controller_{name}") == value


SHARE_PARTITION = {"group": GROUP, **LONE_LOG}
# Counts of the same fetches and acknowledgements of share groups on both sides.
SHARED: list[tuple[str, dict[str, str]]] = [
    *(
        (f"kafka_server_BrokerTopicMetrics_{name}", labels)
        for name in (
            *("TotalShareFetchRequests", "FailedShareFetchRequests"),
            *("TotalShareAcknowledgementRequests", "FailedShareAcknowledgementRequests"),
        )
        for labels in ({}, LONE)
    ),
    ("kafka_server_BrokerTopicMetrics_BytesOut", LONE),
    ("kafka_server_DelayedShareFetchMetrics_Expires", {}),
    *(
        ("kafka_server_ShareGroupMetrics_RecordAcknowledgements", {"ackType": kind})
        for kind in ("Accept", "Release", "Reject", "Renew")
    ),
    *(
        (f"kafka_server_ShareGroupMetrics_{name}", {"group": one})
        for name, one in DEAD_LETTER_METERS
    ),
    *(
        (f"kafka_server_SharePartitionMetrics_{name}", SHARE_PARTITION)
        for name in ("InFlightMessageCount", "InFlightBatchCount", "AcquisitionLockTimeout")
    ),
    ("kafka_server_ShareSessionCache_ShareSessionsCount", {}),
    ("kafka_server_ShareSessionCache_SharePartitionsCount", {}),
    ("kafka_server_share_coordinator_metrics_write_total", {}),
    (
        "kafka_server_share_coordinator_metrics_last_pruned_offset",
        {"topic": "__share_group_state", "partition": "0"},
    ),
]


@pytest.mark.parametrize(("name", "labels"), SHARED, ids=str)
def test_the_same_share_group_is_counted_alike(
    shared_beans: list[Attribute], shared_page: Page, name: str, labels: dict[str, str]
) -> None:
    compare(shared_beans, shared_page, name, labels)


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("kafka_server_ShareGroupMetrics_RequestTopicPartitionsFetchRatio", {"group": GROUP}),
        ("kafka_server_SharePartitionMetrics_InFlightBatchMessageCount", SHARE_PARTITION),
    ],
    ids=str,
)
def test_the_same_share_group_is_measured_as_often(
    shared_beans: list[Attribute], shared_page: Page, name: str, labels: dict[str, str]
) -> None:
    theirs = attribute_values(shared_beans, metric_named(name), labels)
    assert shared_page.value(f"{name}_count", **labels) == theirs["Count"]
    assert shared_page.value(name, **labels, quantile="0.5") == theirs["50thPercentile"]


def test_each_load_of_a_share_partition_is_measured(
    shared_beans: list[Attribute], shared_page: Page
) -> None:
    loads = "kafka_server_ShareGroupMetrics_PartitionLoadTimeMs"
    groups = {GROUP, BURIED_GROUP, LOST_GROUP}
    assert shared_page.value(f"{loads}_count") == len(groups)
    # Kafka leaves out a load that another thread ends before the request looks at it again
    # (SharePartitionManager.processShareFetch).
    theirs = attribute_values(shared_beans, metric_named(loads), {})
    assert theirs["Count"] <= len(groups)


def test_there_was_something_to_share(shared_page: Page) -> None:
    counted = "kafka_server_ShareGroupMetrics_RecordAcknowledgements_total"
    kinds = {"Accept": 2, "Release": 1, "Reject": 1 + 2 * RECORD_COUNT, "Renew": 1}
    assert {kind: shared_page.value(counted, ackType=kind) for kind in kinds} == kinds
    buried = "kafka_server_ShareGroupMetrics_DeadLetterQueueRecordCount_total"
    assert shared_page.value(buried, group=BURIED_GROUP) == RECORD_COUNT
    lost = "kafka_server_ShareGroupMetrics_DeadLetterQueueFailedProduceRequests_total"
    assert shared_page.value(lost, group=LOST_GROUP) == 1
    pruned = "kafka_server_share_coordinator_metrics_last_pruned_offset"
    state = {"topic": "__share_group_state", "partition": "0"}
    assert shared_page.value(pruned, **state) == LAST_SNAPSHOT


def test_every_metric_of_a_combined_node_is_on_its_page(shared_page: Page) -> None:
    endings = {Kind.METER: "_total", Kind.HISTOGRAM: "_count", Kind.TEXT: "_info", Kind.GAUGE: ""}
    wanted = {metric.exported_name + endings[metric.kind] for metric in all_metrics()}
    assert wanted - shared_page.names == set()


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
    # They are read one after the other, while a record comes every half second.
    end = int(theirs["log-end-offset"])
    assert abs(end - 1 - int(theirs["LastAppliedRecordOffset"])) <= 1
    assert abs(end - 1 - int(theirs["last-applied-record-offset"])) <= 1
