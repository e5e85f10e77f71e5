"""Two sides' answers and records, made equal in what they cannot have in common, and compared."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import groupby
from math import isnan
from typing import Any, Final, NamedTuple, TypeGuard

from tests.interop.differential.metadata_log import LogRecord
from tests.interop.differential.sides import NO_ANSWER
from tests.interop.differential.view import ClusterView

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.json_form import Json
from kvorum.wire.uuid_text import RESERVED_UUIDS, uuid_to_text

_UUID = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{22}(?![A-Za-z0-9_-])")
_UNPERMITTED = re.compile(r"Request .* needs (\w+) permission\.")
_NUMBER = re.compile(r"(?<![\w.-])\d+(?![\w.])")
_RESERVED = frozenset(uuid_to_text(reserved) for reserved in RESERVED_UUIDS)
OWN_TIMES: Final = frozenset(
    {"issueTimestamp", "expiryTimestamp", "maxTimestamp", "expirationTimestamp"}
    | {"issueTimestampMs", "expiryTimestampMs", "maxTimestampMs"}
)
EPOCHS: Final = frozenset({"brokerEpoch", "previousBrokerEpoch"})
ANY_API: Final = ""
_BY_TOPIC_ID: Final = "real Kafka walks a hash table keyed by random topic ids"
UNORDERED_RECORDS: Final[Mapping[tuple[str, str], str]] = {
    (ANY_API, "PartitionChangeRecord"): _BY_TOPIC_ID,
    (ANY_API, "RemoveTopicRecord"): _BY_TOPIC_ID,
    (ANY_API, "ConfigRecord"): "a hash table keyed by config name; ours go by request",
    (ANY_API, "ClientQuotaRecord"): "a hash table keyed by quota; ours go by request",
    (ANY_API, "UserScramCredentialRecord"): "a hash table keyed by user; ours go by request",
    (ANY_API, "RemoveUserScramCredentialRecord"): "the same",
    (ANY_API, "RemoveAccessControlEntryRecord"): "a hash set of records",
    (ANY_API, "ClearElrRecord"): "they follow the ConfigRecords",
    ("CreatePartitions", "PartitionRecord"): "a hash set of topic names; ours go by request",
}
"""Records whose order among neighbours of their type is not compared, by API and type, and why."""
UNORDERED_ANSWERS: Final[Mapping[tuple[str, str], str]] = {
    ("DeleteTopics", "responses"): "shuffled on purpose",
    ("DescribeAcls", "resources"): "a hash table of resources",
    ("DescribeAcls", "acls"): "a hash set of entries",
    ("DeleteAcls", "matchingAcls"): "a hash table keyed by random ids",
    ("CreatePartitions", "results"): "a hash set of topic names; ours go by request",
    ("ElectLeaders", "replicaElectionResults"): _BY_TOPIC_ID,
    ("ElectLeaders", "partitionResult"): "a hash table of partitions",
    ("ListPartitionReassignments", "topics"): _BY_TOPIC_ID,
    ("ListPartitionReassignments", "partitions"): "a hash table of partitions",
    ("AlterClientQuotas", "entries"): "a hash table keyed by entity",
    ("AlterUserScramCredentials", "results"): "hash tables keyed by user",
    ("DescribeConfigs", "configs"): "a hash table keyed by config name",
    ("IncrementalAlterConfigs", "responses"): "a hash table keyed by resource",
    ("AlterConfigs", "responses"): "a hash table keyed by resource",
}
"""Lists whose order is not compared, by API and name, and why."""


def is_object(value: Json) -> TypeGuard[dict[str, Json]]:
    return isinstance(value, dict)


def is_array(value: Json) -> TypeGuard[list[Json]]:
    return isinstance(value, list)


class Difference(NamedTuple):
    """A difference of two sides: the place in the answer or the records, and both values."""

    where: str
    real: Json
    ours: Json

    def __str__(self) -> str:
        return f"{self.where}\n      real {as_text(self.real)}\n      ours {as_text(self.ours)}"


def as_text(value: Json) -> str:
    """Return a text that is the same for the same value."""
    return json.dumps(value, sort_keys=True)


class Names(NamedTuple):
    """The names of one side's own values, so that they are the same on both."""

    view: ClusterView
    known: AbstractSet[str]
    own: Mapping[str, str]

    def comparable(self, value: Json, name: str = "") -> Json:
        if is_object(value):
            return {name: self.comparable(each, name) for name, each in value.items()}
        if is_array(value):
            return [self.comparable(each, name) for each in value]
        if name == "hmac" and value:
            return "<secret>"
        if isinstance(value, str):
            return self._text(value, has_numbers=name == "errorMessage")
        if name in OWN_TIMES:
            return "<time>"
        if isinstance(value, float) and isnan(value):
            return "<not a number>"
        if name == "port" and any(address.endswith(f":{value}") for address in self.own):
            return "<port>"
        if name in EPOCHS and isinstance(value, int):
            return self.view.epoch_symbols.get(value, value)
        return value

    def _text(self, text: str, *, has_numbers: bool) -> str:
        for own, symbol in self.own.items():
            text = text.replace(own, symbol)
        text = _UUID.sub(self._uuid, text)
        if has_numbers:
            text = without_request(text)
        return _NUMBER.sub(self._number, text) if has_numbers else text

    def _uuid(self, match: re.Match[str]) -> str:
        text = match[0]
        if text in self.view.symbols:
            return self.view.symbols[text]
        return text if text in self.known or text in _RESERVED else "<uuid>"

    def _number(self, match: re.Match[str]) -> str:
        return self.view.epoch_symbols.get(int(match[0]), match[0])

    def answer(self, api: str, value: Json) -> Json:
        return in_order(api, self.comparable(value))

    def records(self, api: str, records: Sequence[LogRecord], *, is_placed: bool) -> list[Json]:
        """Return records that a request led to as they are to be compared."""
        rows: list[Json] = []
        for kind, run in groupby(records, key=lambda record: record.type):
            made = [self._record(record, is_placed=is_placed) for record in run]
            if UNORDERED_RECORDS.keys() & {(api, kind), (ANY_API, kind)}:
                made.sort(key=as_text)
            rows.extend(made)
        return rows

    def _record(self, record: LogRecord, *, is_placed: bool) -> Json:
        data = record.data
        if is_placed and record.type == "PartitionRecord":
            data = what_is_determined(data, self.view.racks)
        return {"type": record.type, "version": record.version, **self.comparable(data)}


def without_request(text: str) -> str:
    """Return the message of a missing permission without the request, which Kafka prints whole."""
    return _UNPERMITTED.sub(r"Request needs \1 permission.", text)


def in_order(api: str, value: Json, name: str = "") -> Json:
    """Return an answer with the lists sorted whose order means nothing."""
    if is_object(value):
        return {name: in_order(api, each, name) for name, each in value.items()}
    if is_array(value):
        made = [in_order(api, each) for each in value]
        return sorted(made, key=as_text) if (api, name) in UNORDERED_ANSWERS else made
    return value


def what_is_determined(data: Mapping[str, Any], racks: Mapping[int, str | None]) -> dict[str, Any]:
    """Return what chance does not decide of a partition that the controller has placed."""
    replicas, isr = data["replicas"], data["isr"]
    assert len(set(replicas)) == len(replicas), data
    return {
        **data,
        "replicas": len(replicas),
        "racks": len({racks[replica] for replica in replicas}),
        "isr": isr == [replica for replica in replicas if replica in isr],
        "leader": data["leader"] == isr[0] == replicas[0],
        "directories": len(data.get("directories") or ()),
    }


def texts(value: Json) -> Iterator[str]:
    if is_object(value):
        yield from texts(list(value.values()))
    elif is_array(value):
        for each in value:
            yield from texts(each)
    elif isinstance(value, str):
        yield value


def known_uuids(body: Json) -> set[str]:
    return {found for text in texts(body) for found in _UUID.findall(text)}


def differences(real: Json, ours: Json, where: str) -> Iterator[Difference]:
    """Yield where two values differ, as deep as their structure is the same."""
    if is_object(real) and is_object(ours):
        for name in [*real, *(ours.keys() - real.keys())]:
            yield from differences(
                real.get(name, "<absent>"), ours.get(name, "<absent>"), f"{where}.{name}"
            )
    elif is_array(real) and is_array(ours) and len(real) == len(ours):
        for index, (one, other) in enumerate(zip(real, ours, strict=True)):
            yield from differences(one, other, f"{where}[{index}]")
    elif real != ours or isinstance(real, bool) is not isinstance(ours, bool):
        yield Difference(where, real, ours)


def error_codes(value: Json) -> Iterator[Json]:
    if is_object(value):
        for name, inner in value.items():
            if name == "errorCode":
                yield inner
            yield from error_codes(inner)
    elif is_array(value):
        for inner in value:
            yield from error_codes(inner)


def is_failure(value: Json) -> bool:
    """Tell whether a node failed over a request, rather than to refuse it."""
    return bool(value == NO_ANSWER) or ErrorCode.UNKNOWN_SERVER_ERROR in error_codes(value)


def is_met_otherwise(found: Json, expected: Json) -> bool:
    """Tell whether our answer to a request differs from the real one in a way that counts.

    Where the real node fails, ours may answer better, or fail in the same words.
    """
    return bool(found != expected) and (not is_failure(expected) or is_failure(found))
