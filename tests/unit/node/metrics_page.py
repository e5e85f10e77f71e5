"""The page about metrics, written from their catalogue.

``python -m tests.unit.node.metrics_page`` (from the project's root) rewrites it; a test compares
what is there with what would be written.
"""

from collections import defaultdict
from collections.abc import Iterator

from tests.support.source_tree import ROOT

from kvorum.node.metrics.absent import ABSENT
from kvorum.node.metrics.catalogue import KIP_853, all_metrics
from kvorum.node.metrics.names import OWN_DOMAIN, Kind, Metric, exported_name

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
`tests/interop/test_metrics.py`. This page is written by `python -m tests.unit.node.metrics_page`.
"""
ENDINGS = {Kind.GAUGE: "", Kind.METER: "_total", Kind.HISTOGRAM: "", Kind.TEXT: "_info"}


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


def planned_rows() -> Iterator[str]:
    for metric in KIP_853.metrics:
        yield f"| {name_of(metric)} | `{metric.name}` | {metric.documentation} |"


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
            *planned_rows(),
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


if __name__ == "__main__":
    PAGE.write_text(page())
