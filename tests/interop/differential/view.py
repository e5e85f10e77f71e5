"""The view of a side from its log: what placeholders stand for, and names for random ids.

Placeholders are strings, in bodies of requests. T is a topic's name, P a partition's index, B a
broker's id; to numbers "+n" or "-n" can be added:

=========================  =====================================================================
``$topic:T``               the id of the topic; the zero id without one of that name
``$epoch:B``               the epoch of the broker; -1 where it is not registered
``$leader:T:P``            the leader of the partition; -1 without one (also below)
``$leader_broker_epoch:T:P``  the epoch of the broker that leads it
``$leader_epoch:T:P``      its leader epoch
``$partition_epoch:T:P``   its partition epoch
``$replicas:T:P``          its replicas, a list; also ``$isr``, ``$elr``
``$shrunk:T:P``            its ISR without the last member that does not lead
``$alone:T:P``             its leader alone, as an ISR
``$grown:T:P``             its ISR and the first replica that is not in it
``$full:T:P``              its ISR and all replicas that are not in it
``$grown_with_epochs:T:P`` the same with the epoch of each broker; so for all of these lists
``$dir:B:N``               the id of the broker's n-th log directory: another in each run, as real
                           Kafka does not forget in which directories deleted topics were
``$level:F``               the finalized level of the feature; 0 without one
``$end``                   the offset after the last record that a step led to
``$secret:N``              the secret of the script's n-th delegation token, also when it is gone
``$cluster``               the id of the cluster
=========================  =====================================================================

This folds the few records it needs itself, so that an error in our image cannot hide from it.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from tests.interop.differential.metadata_log import LogRecord
from tests.support.node import CLUSTER_ID

from kvorum.wire.json_form import Json
from kvorum.wire.uuid_text import ZERO_UUID, uuid_to_text

Entity = tuple[tuple[str, str | None], ...]


@dataclass
class SettingsView:
    """Everything that is set, by what it is set for."""

    configs: dict[tuple[int, str], set[str]] = field(
        default_factory=dict[tuple[int, str], set[str]]
    )
    quotas: dict[Entity, set[str]] = field(default_factory=dict[Entity, set[str]])
    credentials: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    first_features: dict[str, int] = field(default_factory=dict[str, int])
    features: dict[str, int] = field(default_factory=dict[str, int])
    controllers: set[int] = field(default_factory=set[int])
    is_begun: bool = False

    def begin(self) -> None:
        """Take the features of now for those to go back to."""
        if not self.is_begun:
            self.is_begun = True
            self.first_features = dict(self.features)

    def fold(self, record: LogRecord) -> None:
        data: Mapping[str, Any] = record.data
        match record.type:
            case "ConfigRecord":
                keys = self.configs.setdefault((data["resourceType"], data["resourceName"]), set())
                (keys.discard if data["value"] is None else keys.add)(data["name"])
            case "ClientQuotaRecord":
                entity = tuple((part["entityType"], part["entityName"]) for part in data["entity"])
                keys = self.quotas.setdefault(tuple(sorted(entity)), set())
                (keys.discard if data["remove"] else keys.add)(data["key"])
            case "UserScramCredentialRecord":
                self.credentials.add((data["name"], data["mechanism"]))
            case "RemoveUserScramCredentialRecord":
                self.credentials.discard((data["name"], data["mechanism"]))
            case "RegisterControllerRecord":
                self.controllers.add(data["controllerId"])
            case "FeatureLevelRecord":
                self.features[data["name"]] = data["featureLevel"]
            case _:
                pass


def uuid_of(*numbers: int) -> str:
    """Return a uuid made of small numbers, the last of them at its end."""
    return uuid_to_text(bytes([0x40, *numbers]).ljust(15, b"\x01") + bytes([numbers[-1]]))


_SHIFTED = re.compile(r"(\$.*?)([+-]\d+)")
_WITH_EPOCHS = "_with_epochs"
_LISTS = {"isr": "isr", "replicas": "replicas", "elr": "eligibleLeaderReplicas"}


@dataclass
class PartitionView:
    leader: int
    lists: dict[str, list[int]]
    leader_epoch: int = 0
    partition_epoch: int = 0

    def change(self, data: Mapping[str, Any]) -> None:
        self.partition_epoch += 1
        for name, key in _LISTS.items():
            changed = cast("list[int] | None", data.get(key))
            if changed is not None:
                self.lists[name] = changed
        leader = data.get("leader", -2)
        if leader != -2:
            self.leader, self.leader_epoch = leader, self.leader_epoch + 1


def _shrunk(partition: PartitionView) -> list[int]:
    isr = partition.lists["isr"]
    gone = next((each for each in reversed(isr) if each != partition.leader), None)
    return [each for each in isr if each != gone]


def _full(partition: PartitionView) -> list[int]:
    isr = partition.lists["isr"]
    return [*isr, *(each for each in partition.lists["replicas"] if each not in isr)]


_MADE_LISTS: Mapping[str, Callable[[PartitionView], list[int]]] = {
    "isr": lambda partition: partition.lists["isr"],
    "replicas": lambda partition: partition.lists["replicas"],
    "elr": lambda partition: partition.lists["elr"],
    "alone": lambda partition: [partition.leader],
    "shrunk": _shrunk,
    "grown": lambda partition: _full(partition)[: len(partition.lists["isr"]) + 1],
    "full": _full,
}


def _next_symbol(name: str, given: Iterable[str]) -> str:
    return f"<{name}#{1 + sum(symbol.startswith(f'<{name}#') for symbol in given)}>"


@dataclass
class ClusterView:
    """The topics and brokers of a log, and which random ids and epochs it has shown."""

    topic_ids: dict[str, str] = field(default_factory=dict[str, str])
    partitions: dict[tuple[str, int], PartitionView] = field(
        default_factory=dict[tuple[str, int], PartitionView]
    )
    epochs: dict[int, int] = field(default_factory=dict[int, int])
    fenced: set[int] = field(default_factory=set[int])
    racks: dict[int, str | None] = field(default_factory=dict[int, str | None])
    symbols: dict[str, str] = field(default_factory=dict[str, str])
    epoch_symbols: dict[int, str] = field(default_factory=dict[int, str])
    settings: SettingsView = field(default_factory=SettingsView)
    tokens: dict[str, None] = field(default_factory=dict[str, None])
    end_offset: int = 0
    run: int = 0

    def fold(self, records: Iterable[LogRecord]) -> None:
        for record in records:
            take = _FOLDS.get(record.type)
            if take is not None:
                take(self, record.data)
            self.settings.fold(record)

    def begin_script(self) -> None:
        """Forget the names given to random ids, so that they count from one again."""
        self.run += 1
        self.settings.begin()
        self.symbols.clear()
        self.epoch_symbols.clear()
        self.tokens.clear()

    def resolve(self, value: Json) -> Json:
        if isinstance(value, Mapping):
            fields = cast("Mapping[str, Json]", value)
            return {name: self.resolve(each) for name, each in fields.items()}
        if isinstance(value, list | tuple):
            return [self.resolve(each) for each in cast("list[Json]", value)]
        if isinstance(value, str) and value.startswith("$"):
            if shifted := _SHIFTED.fullmatch(value):
                return self._lookup(shifted[1]) + int(shifted[2])
            return self._lookup(value)
        return value

    def _lookup(self, placeholder: str) -> Json:
        kind, *arguments = placeholder.removeprefix("$").split(":")
        match kind:
            case "topic":
                return self.topic_ids.get(arguments[0], uuid_to_text(ZERO_UUID))
            case "epoch":
                return self.epochs.get(int(arguments[0]), -1)
            case "dir":
                broker, number = map(int, arguments)
                return uuid_of(7, self.run & 0xFF, self.run >> 8, broker, number)
            case "level":
                return self.settings.features.get(arguments[0], 0)
            case "secret":
                number = int(arguments[0])
                token_ids = list(self.tokens)
                return secret_of(token_ids[number] if number < len(token_ids) else "")
            case "end":
                return self.end_offset
            case "cluster":
                return CLUSTER_ID
            case _:
                return self._of_partition(kind, arguments[0], int(arguments[1]))

    def _of_partition(self, kind: str, topic: str, index: int) -> Json:
        found = self.partitions.get((self.topic_ids.get(topic, ""), index))
        if kind.endswith(_WITH_EPOCHS):
            brokers = self._of_partition(kind.removesuffix(_WITH_EPOCHS), topic, index)
            return [
                {"brokerId": each, "brokerEpoch": self.epochs.get(each, -1)} for each in brokers
            ]
        if kind in _MADE_LISTS:
            return _MADE_LISTS[kind](found) if found else []
        if found is None:
            return -1
        match kind:
            case "leader":
                return found.leader
            case "leader_broker_epoch":
                return self.epochs.get(found.leader, -1)
            case "leader_epoch":
                return found.leader_epoch
            case "partition_epoch":
                return found.partition_epoch
            case _:
                raise ValueError(f"unknown placeholder ${kind}")

    def create_topic(self, data: Mapping[str, Any]) -> None:
        name, topic_id = data["name"], data["topicId"]
        self.topic_ids[name] = topic_id
        self.symbols[topic_id] = _next_symbol(name, self.symbols.values())

    def create_partition(self, data: Mapping[str, Any]) -> None:
        lists: dict[str, list[int]] = {name: data.get(key) or [] for name, key in _LISTS.items()}
        key = data["topicId"], data["partitionId"]
        self.partitions[key] = PartitionView(
            data["leader"], lists, data["leaderEpoch"], data["partitionEpoch"]
        )

    def change_partition(self, data: Mapping[str, Any]) -> None:
        self.partitions[data["topicId"], data["partitionId"]].change(data)

    def remove_topic(self, data: Mapping[str, Any]) -> None:
        gone = data["topicId"]
        self.topic_ids = {name: each for name, each in self.topic_ids.items() if each != gone}

    def register_broker(self, data: Mapping[str, Any]) -> None:
        broker, epoch = data["brokerId"], data["brokerEpoch"]
        self.epochs[broker] = epoch
        self.racks[broker] = data["rack"]
        (self.fenced.add if data["fenced"] else self.fenced.discard)(broker)
        if epoch not in self.epoch_symbols:
            self.epoch_symbols[epoch] = _next_symbol(
                f"broker {broker}", self.epoch_symbols.values()
            )

    def change_broker(self, data: Mapping[str, Any]) -> None:
        change = data.get("fenced", 0)
        if change:
            (self.fenced.add if change > 0 else self.fenced.discard)(data["brokerId"])

    def remove_broker(self, data: Mapping[str, Any]) -> None:
        self.epochs.pop(data["brokerId"], None)
        self.fenced.discard(data["brokerId"])

    def make_token(self, data: Mapping[str, Any]) -> None:
        self.tokens[data["tokenId"]] = None


_FOLDS = {
    "TopicRecord": ClusterView.create_topic,
    "PartitionRecord": ClusterView.create_partition,
    "PartitionChangeRecord": ClusterView.change_partition,
    "RemoveTopicRecord": ClusterView.remove_topic,
    "RegisterBrokerRecord": ClusterView.register_broker,
    "BrokerRegistrationChangeRecord": ClusterView.change_broker,
    "UnregisterBrokerRecord": ClusterView.remove_broker,
    "DelegationTokenRecord": ClusterView.make_token,
}


TOKEN_KEY: Final = "a secret of both sides"
"""The value of ``delegation.token.secret.key`` for scripts with ``$secret:N``."""


def secret_of(token_id: str) -> str:
    """Return the secret of a delegation token, as JSON shows bytes."""
    secret = hmac.digest(TOKEN_KEY.encode(), token_id.encode(), hashlib.sha512)
    return base64.b64encode(secret).decode()
