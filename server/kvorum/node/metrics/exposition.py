"""The format of Prometheus, by its own client; no other module imports that client."""

from collections.abc import Iterable, Iterator
from types import MappingProxyType

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client import Metric as Family
from prometheus_client.exposition import choose_encoder

from kvorum.node.metrics.names import Kind, Reading, exported_name
from kvorum.node.metrics.sensors import Distribution

_TYPES = MappingProxyType(
    {Kind.GAUGE: "gauge", Kind.METER: "counter", Kind.HISTOGRAM: "summary", Kind.TEXT: "info"}
)


class Exposition:
    """Exports readings, with the Prometheus client's own metrics of the process."""

    def __init__(self) -> None:
        self._readings: tuple[Reading, ...] = ()
        self._registry = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)
        self._registry.register(self)

    def collect(self) -> Iterator[Family]:
        """Yield the metric families of the current readings."""
        # Beans that differ only in their other keys, as of a topic and of all, share a name.
        families: dict[str, Family] = {}
        for reading in self._readings:
            name = reading.metric.exported_name
            if name not in families:
                families[name] = Family(name, reading.metric.help, _TYPES[reading.metric.kind])
            _add(families[name], reading)
        yield from families.values()

    def render(self, readings: Iterable[Reading], accept: str) -> tuple[bytes, str]:
        """Return the page and its content type, in a format that `accept` allows."""
        self._readings = tuple(readings)
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type


def _add(family: Family, reading: Reading) -> None:
    metric, value = reading.metric, reading.value
    labels = dict(zip(map(exported_name, metric.labels), reading.labels, strict=True))
    if isinstance(value, Distribution):
        for share, quantile in value.quantiles:
            family.add_sample(family.name, {**labels, "quantile": str(share)}, quantile)
        family.add_sample(f"{family.name}_count", labels, value.count)
        family.add_sample(f"{family.name}_sum", labels, value.total)
    elif isinstance(value, str):
        text = {exported_name(metric.name): value}
        family.add_sample(f"{family.name}_info", {**labels, **text}, 1)
    else:
        ending = "_total" if metric.kind is Kind.METER else ""
        family.add_sample(f"{family.name}{ending}", labels, value)
