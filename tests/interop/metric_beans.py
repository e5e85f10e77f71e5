"""The beans of a real node, as the program MetricNames prints them."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kvorum.node.metrics.names import Kind, Metric

READY: Final = "ready"
"""The line after all attributes, and the first line of the program."""
ATTRIBUTES: Final = {Kind.GAUGE: "Value", Kind.TEXT: "Value", Kind.METER: "Count"}
HISTOGRAM_ATTRIBUTES: Final = frozenset(
    {"Count", "50thPercentile", "99thPercentile", "999thPercentile"}
)


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of a bean, with its value."""

    domain: str
    keys: tuple[tuple[str, str], ...]
    name: str
    kind: str
    text: str

    @property
    def type(self) -> str:
        return dict(self.keys).get("type", "")

    @property
    def metric_name(self) -> str:
        """The name of the metric: as the bean, or as its attribute where that has no name."""
        return dict(self.keys).get("name", self.name)

    @property
    def labels(self) -> dict[str, str]:
        """The other keys of the bean."""
        return {key: value for key, value in self.keys if key not in {"type", "name"}}


def read(line: str) -> Attribute:
    """Return an attribute from a line of the program."""
    bean, name, kind, text = line.split("\t", 3)
    domain, _, words = bean.partition(":")
    pairs = (word.partition("=") for word in words.split(","))
    return Attribute(domain, tuple((key, value) for key, _, value in pairs), name, kind, text)


def attributes_of(process: subprocess.Popen[str]) -> list[Attribute]:
    """Return what the program in `process` prints in answer to a line."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    said = iter(process.stdout.readline, f"{READY}\n")
    return [read(line.rstrip("\n")) for line in said if line.count("\t") >= 3]


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


def values_by_labels(
    beans: list[Attribute], metric: Metric
) -> Mapping[frozenset[tuple[str, str]], float]:
    """Return the values of a metric on the real node, by their labels."""
    found = {
        frozenset((key.replace("-", "_"), value) for key, value in each.labels.items()): each.text
        for each in beans
        if is_of(each, metric)
    }
    return {labels: float(text) for labels, text in found.items()}


def attribute_values(
    beans: list[Attribute], metric: Metric, labels: Mapping[str, str]
) -> dict[str, float]:
    """Return what a metric with labels is on the real node, by the names of its attributes."""
    return {
        each.name: float(each.text)
        for each in beans
        if is_of(each, metric) and each.labels == labels
    }
