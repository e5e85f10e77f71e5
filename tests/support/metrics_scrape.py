"""The page /metrics of a node, as Prometheus reads it."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from prometheus_client.parser import text_string_to_metric_families
from tests.support.waiting import PATIENCE_S

Labels = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Page:
    """The samples of one scrape."""

    samples: Mapping[tuple[str, Labels], float]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.samples)

    def value(self, name: str, **labels: str) -> float:
        """Return one value; KeyError without one."""
        return self.samples[name, frozenset(labels.items())]


def scrape(address: str) -> Page:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=PATIENCE_S) as response:
        text = response.read().decode()
    return Page(
        {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
    )


@dataclass(frozen=True, slots=True)
class Probe:
    """The answer to a probe."""

    status: HTTPStatus
    said: Mapping[str, object]


def probe(address: str, path: str) -> Probe:
    """Ask ``/healthz`` or ``/readyz``."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=PATIENCE_S) as response:
            return Probe(HTTPStatus(response.status), json.load(response))
    except urllib.error.HTTPError as error:
        with error:
            return Probe(HTTPStatus(error.code), json.load(error))


def reassignment_figures(port: int) -> dict[str, float]:
    """Return the reassignment_figures about a reassignment, by the end of their names."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S) as page:
        lines = page.read().decode().splitlines()
    prefix = "kvorum_quorum_reassignment_"
    found = (line.split() for line in lines if line.startswith(prefix))
    return {name.removeprefix(prefix): float(value) for name, value in found}
