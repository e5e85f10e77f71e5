"""One rule from Kafka's beans to names in Prometheus, and the page about metrics that it gives.

`python -m tests.unit.node.test_metrics_page` writes the page from the catalogue.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module

import pytest
from prometheus_client import Metric as Family
from tests.support.source_tree import ROOT

from kvorum.node.metrics import catalogue
from kvorum.node.metrics.absent import ABSENT
from kvorum.node.metrics.catalogue import KIP_853, all_metrics
from kvorum.node.metrics.exposition import Exposition
from kvorum.node.metrics.names import OWN_DOMAIN, Kind, Metric, Reading, exported_name
from kvorum.node.metrics.sensors import Distribution

PAGE = ROOT / "docs" / "metrics.md"
HEAD = """\
# Metrics and health

`kvorum.metrics.listener=127.0.0.1:9404` has a node answer over HTTP, from before its log is opened
until it has stopped. Without the key nothing is listened on and nothing of it is imported. It
needs the Prometheus client, the extra `metrics`: `pip install '.[metrics]'` in a clone of the
project, until there is a release. There is no access control: listen where only operators come.

| path | is |
|---|---|
| `/metrics` | everything below, for Prometheus (text, or OpenMetrics where that is asked for) |
| `/healthz` | 200 while the process runs and its log can be written, else 503 |
| `/readyz` | 200 while the node can do its work, else 503 |

Both probes answer with a line of JSON: `status`, the `reasons` against it, and where the node
stands. A controller is ready when it leads or hears of a leader and has no more than 1,000
committed records still to take in. A broker is ready when it runs and is unfenced as far as it
knows; it stays so while there is no controller, because it goes on serving its clients, and taking
all brokers out of service would not help.

## Names

The metrics are Kafka's. One rule makes a name out of a bean, the one that the JMX exporter is
usually configured with: domain, type and name of the bean, or the attribute's name where the bean
has none, joined by underscores; what Prometheus does not allow in a name becomes an underscore,
and upper case stays. Other keys of the bean become labels. A meter is its count (`…PerSec` becomes
`…_total`), a histogram a summary (`…_count`, `…_sum`, and the quantiles of the latest 1,024
values), a text `…_info` of value 1 with the text in a label. What is kvorum's own begins with
`kvorum_`; `process_…` and `python_…` are the Prometheus client's.

Names, and the values of a node that has just started, are compared with a real Kafka 4.4.0 by
`tests/interop/test_metrics.py`.
This page is written by `python -m tests.unit.node.test_metrics_page`.
"""
ENDINGS = {Kind.GAUGE: "", Kind.METER: "_total", Kind.HISTOGRAM: "", Kind.TEXT: "_info"}
NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"
METRICS = catalogue.all_metrics()


def name_of(metric: Metric) -> str:
    labels = [exported_name(label) for label in metric.labels]
    if metric.kind is Kind.HISTOGRAM:
        labels.append("quantile")
    if metric.kind is Kind.TEXT:
        labels.append(exported_name(metric.name))
    name = metric.exported_name + ENDINGS[metric.kind]
    return f"`{name}{{{','.join(labels)}}}`" if labels else f"`{name}`"


def metric_rows() -> Iterator[str]:
    for metric in all_metrics():
        if metric.domain != OWN_DOMAIN and metric not in KIP_853.metrics:
            attribute = f" `{metric.name}`" if metric.is_attribute else ""
            yield f"| {name_of(metric)} | `{metric.bean}`{attribute} | {metric.documentation} |"


def own_rows() -> Iterator[str]:
    for metric in all_metrics():
        if metric.domain == OWN_DOMAIN:
            yield f"| {name_of(metric)} | {metric.documentation} |"


def absent_rows() -> Iterator[str]:
    by_reason: dict[str, list[str]] = defaultdict(list)
    for absent in ABSENT:
        names = f": {', '.join(sorted(absent.names))}" if absent.names else ""
        by_reason[absent.reason].append(f"`{absent.domain}:type={absent.type}`{names}")
    for reason, beans in by_reason.items():
        yield f"| {'; '.join(beans)} | {reason} |"


def page() -> str:
    return "\n".join(
        (
            HEAD,
            "## Kafka's",
            "",
            "| name | in Kafka | says |",
            "|---|---|---|",
            *metric_rows(),
            "",
            "## Of KIP-853, not in Kafka",
            "",
            "The KIP names these metrics of `kafka.server:type=raft-metrics`, and Kafka 4.4.0 does",
            "not have them. All but the last are there on the leader only.",
            "",
            "| name | in the KIP | says |",
            "|---|---|---|",
            *(
                f"| {name_of(one)} | `{one.name}` | {one.documentation} |"
                for one in KIP_853.metrics
            ),
            "",
            "## kvorum's own",
            "",
            "| name | says |",
            "|---|---|",
            *own_rows(),
            "",
            "## What Kafka measures and kvorum does not",
            "",
            "| beans (of those above: the metrics that are not there) | because |",
            "|---|---|",
            *absent_rows(),
            "",
        )
    )


def test_the_page_is_as_it_would_be_written() -> None:
    assert PAGE.read_text() == page(), "run python -m tests.unit.node.test_metrics_page"


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
                assert samples[f"{name}_count", *sorted(labels)] == 3
                assert samples[f"{name}_sum", *sorted(labels)] == 4.5
                assert samples[name, *sorted([*labels, ("quantile", "0.99")])] == 2.5


def test_a_page_holds_what_is_known_of_the_process_too() -> None:
    body, _ = Exposition().render([], "")
    assert b"process_cpu_seconds_total" in body


if __name__ == "__main__":
    PAGE.write_text(page())
