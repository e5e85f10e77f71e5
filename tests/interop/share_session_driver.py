"""Our share sessions, driven and shown as ShareSessionOracle.java does Kafka's."""

from typing import Final

from kvorum.broker.share_session.context import (
    FinalContext,
    ReadSharePartition,
    ShareFetchContext,
    SubsequentContext,
    acknowledge_session_update,
    new_context,
)
from kvorum.broker.share_session.session import ShareSessionKey
from kvorum.broker.share_session.session_cache import ShareSessionCache
from kvorum.broker.share_session.topic_id_partition import TopicIdPartition
from kvorum.metadata.api import RequestError
from kvorum.wire.messages.share_fetch import ShareFetchResponse

NONE: Final = "none"
"""A list without entries."""


class Driver:
    """The sessions of a broker, with the contexts of all requests."""

    def __init__(self, sessions_max: int) -> None:
        self.cache = ShareSessionCache(sessions_max)
        self.contexts: list[ShareFetchContext] = []
        self.keys: set[ShareSessionKey] = set()
        self._heard: list[str] = []

    def on_member_leave(self, key: ShareSessionKey) -> None:
        self._heard.append(f"leaves:{key.group_id}/{key.member_id}")

    def on_group_empty(self, group_id: str) -> None:
        self._heard.append(f"empty:{group_id}")

    def answer(self, line: str) -> str:
        self._heard = []
        try:
            result = self._step(line.split(" "))
        except RequestError as refusal:
            result = f"error {refusal.code.value}"
        return f"{result} | {' '.join(self._heard)} | {self._described()}"

    def _step(self, parts: list[str]) -> str:
        match parts[0]:
            case "fetch":
                return self._fetched(parts)
            case "respond":
                return _responded(self.contexts[int(parts[1])], int(parts[2]), parts[3])
            case "throttle":
                response = self.contexts[int(parts[1])].throttled_response(int(parts[2]))
                return response.encode(1).hex()
            case "acknowledge":
                key = ShareSessionKey(parts[1], parts[2])
                acknowledge_session_update(self.cache, key, int(parts[3]))
            case "epoch":
                session = self.cache.get(ShareSessionKey(parts[1], parts[2]))
                if session is not None:
                    session.epoch = int(parts[3])
            case "remove":
                removed = self.cache.remove(ShareSessionKey(parts[1], parts[2]))
                return "ok" if removed is None else "removed"
            case "remove-all":
                self.cache.remove_all()
            case "disconnect":
                self.cache.on_disconnect(parts[1], self)
            case unknown:
                raise ValueError(unknown)
        return "ok"

    def _fetched(self, parts: list[str]) -> str:
        key = ShareSessionKey(parts[1], parts[2])
        self.keys.add(key)
        context = new_context(
            self.cache,
            key,
            int(parts[3]),
            parts[4],
            listed=_partitions(parts[6]),
            forgotten=_partitions(parts[7]),
            has_acknowledgements=parts[5] == "1",
        )
        self.contexts.append(context)
        return f"context {len(self.contexts)} {_context_text(context)}"

    def _described(self) -> str:
        cache = self.cache
        partition_count = cache.partition_count
        evicted = cache.eviction_count
        texts = [f"{len(cache)} sessions {partition_count} partitions {evicted} evicted"]
        for key in sorted(self.keys):
            session = cache.get(key)
            if session is not None:
                partitions = "".join(
                    f"{_partition_text(one.partition)}," for one in session.partitions.values()
                )
                texts.append(f"{key.group_id}/{key.member_id}@{session.epoch}[{partitions}]")
        return " ".join(texts)


def _partitions(text: str) -> list[TopicIdPartition]:
    return [] if text == NONE else [_partition(one) for one in text.split(",")]


def _partition(text: str) -> TopicIdPartition:
    """Read the number of a topic, a partition, and the name of the topic unless it is unknown."""
    number, index, *names = text.split(":")
    return TopicIdPartition(
        int(number).to_bytes(16, "big"), int(index), names[0] if names else None
    )


def _partition_text(partition: TopicIdPartition) -> str:
    return f"{int.from_bytes(partition.topic_id, 'big')}:{partition.partition}"


def _context_text(context: ShareFetchContext) -> str:
    if isinstance(context, FinalContext):
        kind = "FinalContext"
    else:
        is_subsequent = isinstance(context, SubsequentContext)
        kind = f"ShareSessionContext{'+' if is_subsequent else ''}"
    unknown = sorted(_partition_text(one) for one in context.partitions if one.topic is None)
    known = [_partition_text(one) for one in context.partitions if one.topic is not None]
    return f"{kind} [{', '.join(unknown)}] [{', '.join(known)}]"


def _responded(context: ShareFetchContext, version: int, text: str) -> str:
    read: list[ReadSharePartition] = []
    for one in [] if text == NONE else text.split(","):
        partition_text, code, record_bytes = one.split("/")
        partition = _partition(partition_text)
        data = ShareFetchResponse.PartitionData(partition.partition, int(code))
        data.records = bytes(int(record_bytes))
        read.append(ReadSharePartition(partition, data))
    size = context.response_size(read, version=version)
    return f"{size} {context.response(read).encode(version).hex()}"
