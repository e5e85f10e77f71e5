"""What a node's /metrics says, as Prometheus reads it."""

from __future__ import annotations

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
        """The names of all samples."""
        return frozenset(name for name, _ in self.samples)

    def value(self, name: str, **labels: str) -> float:
        """Return one value; KeyError where there is none."""
        return self.samples[name, frozenset(labels.items())]


def scrape(address: str) -> Page:
    """Return what ``/metrics`` says now."""
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
