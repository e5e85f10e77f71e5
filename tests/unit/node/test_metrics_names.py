"""One rule from Kafka's beans to names in Prometheus, and pages that Prometheus' parser reads."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from importlib import import_module

import pytest
from prometheus_client import Metric as Family

from kvorum.node.metrics import catalogue
from kvorum.node.metrics.exposition import Exposition
from kvorum.node.metrics.names import Kind, Metric, Reading
from kvorum.node.metrics.sensors import Distribution

NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"
METRICS = catalogue.all_metrics()


@pytest.mark.parametrize(
    ("reading", "name", "bean"),
    [
        (
            catalogue.KAFKA_CONTROLLER.reading("ActiveControllerCount", 1),
            "kafka_controller_KafkaController_ActiveControllerCount",
            "kafka.controller:type=KafkaController,name=ActiveControllerCount",
        ),
        (
            catalogue.RAFT.reading("current-leader", 1),
            "kafka_server_raft_metrics_current_leader",
            "kafka.server:type=raft-metrics",
        ),
        (
            catalogue.CONTROLLER_STATS.reading("UncleanLeaderElectionsPerSec", 1),
            "kafka_controller_ControllerStats_UncleanLeaderElections",
            "kafka.controller:type=ControllerStats,name=UncleanLeaderElectionsPerSec",
        ),
        (
            catalogue.FINALIZED_LEVELS.reading("FinalizedLevel", 1, "groupVersion"),
            "kafka_server_MetadataLoader_FinalizedLevel",
            "kafka.server:type=MetadataLoader,name=FinalizedLevel,featureName=*",
        ),
        (catalogue.OWN.reading("is_ready", 1), "kvorum_is_ready", "kvorum:type=,name=is_ready"),
    ],
)
def test_a_bean_has_one_name(reading: Reading, name: str, bean: str) -> None:
    assert (reading.metric.exported_name, reading.metric.bean) == (name, bean)


def test_no_two_beans_share_a_name_and_each_metric_tells_its_bean() -> None:
    # A bean may be there with more keys as well: of one topic, and of all of them.
    beans = {(one.exported_name, one.domain, one.type, one.name, one.kind) for one in METRICS}
    counts = Counter(name for name, *_ in beans)
    assert [name for name, count in counts.items() if count > 1] == []
    assert len({(one.exported_name, one.labels) for one in METRICS}) == len(METRICS)
    for metric in METRICS:
        assert NAME.fullmatch(metric.exported_name)
        assert metric.domain == "kvorum" or metric.bean in metric.help


def value_for(metric: Metric) -> float | str | Distribution:
    match metric.kind:
        case Kind.HISTOGRAM:
            return Distribution(3, 4.5, ((0.5, 1.0), (0.99, 2.5)))
        case Kind.TEXT:
            return 'a "text"\nof two lines \\'
        case _:
            return 7


def families_of(page: str, *, is_open: bool) -> Iterable[Family]:
    """Return what Prometheus' own parsers read from a page."""
    parser = import_module(f"prometheus_client{'.openmetrics' if is_open else ''}.parser")
    parse: Callable[[str], Iterable[Family]] = parser.text_string_to_metric_families
    return parse(page)


def test_a_metric_that_is_not_in_its_group_has_no_reading() -> None:
    with pytest.raises(KeyError):
        catalogue.RAFT.reading("ActiveControllerCount", 1)


@pytest.mark.parametrize("accept", ["", "text/plain", OPEN_METRICS])
def test_prometheus_reads_the_page_back(accept: str) -> None:
    readings = [
        Reading(metric, value_for(metric), tuple("label" for _ in metric.labels))
        for metric in METRICS
    ]
    body, content_type = Exposition().render(readings, accept)
    is_open = accept == OPEN_METRICS
    assert ("openmetrics" in content_type) is is_open
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in families_of(body.decode(), is_open=is_open)
        for sample in family.samples
    }
    for metric in METRICS:
        name, labels = (
            metric.exported_name,
            [(label.replace("-", "_"), "label") for label in metric.labels],
        )
        match metric.kind:
            case Kind.GAUGE:
                assert samples[name, *sorted(labels)] == 7
            case Kind.METER:
                assert samples[f"{name}_total", *sorted(labels)] == 7
            case Kind.TEXT:
                text = (metric.name.replace("-", "_"), 'a "text"\nof two lines \\')
                assert samples[f"{name}_info", text] == 1
            case Kind.HISTOGRAM:
                assert samples[f"{name}_count", *labels] == 3
                assert samples[f"{name}_sum", *labels] == 4.5
                assert samples[name, *sorted([*labels, ("quantile", "0.99")])] == 2.5


def test_a_page_holds_what_is_known_of_the_process_too() -> None:
    body, _ = Exposition().render([], "")
    assert b"process_cpu_seconds_total" in body
