"""The names of Kafka's metrics in Prometheus, and the form of their values.

One rule, that of the JMX exporter's usual configuration: domain, type and name of the bean, or the
name of the attribute if the bean has no name of its own, joined by underscores; a character that
Prometheus does not allow in a name becomes an underscore, and upper case stays. The other keys of
the bean become labels. Besides, by kind:

- a meter (a rate in Kafka) is its count: ``…PerSec`` becomes ``…_total``;
- a histogram becomes a summary: ``…_count``, ``…_sum`` and a label ``quantile``;
- a text becomes ``…_info`` with the value 1, the text in a label with the attribute's name.

The names of kvorum's own metrics, without a bean in Kafka, begin with ``kvorum_``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from kvorum.node.metrics.sensors import Distribution

OWN_DOMAIN = "kvorum"
SERVER_DOMAIN = "kafka.server"
PER_SECOND = "PerSec"
_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_]")


class Kind(Enum):
    """The kind of a metric in Kafka, which decides how it is exported."""

    GAUGE = "gauge"
    METER = "meter"
    HISTOGRAM = "histogram"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric: an attribute of a bean that has no name, or a bean with `name` of its own."""

    domain: str
    type: str
    name: str
    kind: Kind
    is_attribute: bool
    labels: tuple[str, ...]
    documentation: str

    @property
    def bean(self) -> str:
        """The bean as Kafka registers it, without the values of its other keys."""
        keys = "".join(f",{label}=*" for label in self.labels)
        own = "" if self.is_attribute else f",name={self.name}"
        return f"{self.domain}:type={self.type}{own}{keys}"

    @property
    def exported_name(self) -> str:
        """The name in Prometheus, without the suffix of its kind."""
        if self.domain == OWN_DOMAIN:
            return exported_name(self.domain, self.name)
        name = self.name.removesuffix(PER_SECOND) if self.kind is Kind.METER else self.name
        return exported_name(self.domain, self.type, name)

    @property
    def help(self) -> str:
        """The description of the metric, and its bean and attribute in Kafka."""
        if self.domain == OWN_DOMAIN:
            return self.documentation
        attribute = f" {self.name}" if self.is_attribute else ""
        return f"{self.documentation} ({self.bean}{attribute})"


@dataclass(frozen=True, slots=True)
class Reading:
    """A value of a metric, with the values of the metric's labels."""

    metric: Metric
    value: float | str | Distribution
    labels: tuple[str, ...] = ()


class MetricGroup:
    """The metrics of one type of bean, by name."""

    def __init__(
        self,
        domain: str,
        bean_type: str,
        documentation: Mapping[str, str],
        *,
        kind: Kind = Kind.GAUGE,
        has_attributes: bool = False,
        labels: tuple[str, ...] = (),
    ) -> None:
        self._metrics = MappingProxyType(
            {
                name: Metric(
                    domain=domain,
                    type=bean_type,
                    name=name,
                    kind=kind,
                    is_attribute=has_attributes,
                    labels=labels,
                    documentation=text,
                )
                for name, text in documentation.items()
            }
        )

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Every metric of the group."""
        return tuple(self._metrics.values())

    def reading(self, name: str, value: float | str | Distribution, *labels: str | int) -> Reading:
        """Return a value of the metric called `name`; KeyError if it is not in the group."""
        return Reading(self._metrics[name], value, tuple(map(str, labels)))


def exported_name(*parts: str) -> str:
    """Return the parts as one name that Prometheus allows."""
    return "_".join(_NOT_IN_A_NAME.sub("_", part) for part in parts)
