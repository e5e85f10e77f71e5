"""The partitions that a follower fetches from one leader (Kafka's AbstractFetcherThread).

Pure: `fetch` returns the request to send, `on_response` takes in its response, and `on_failure`
ends a request without one. Partitions may be added and removed meanwhile: what a response says of
a partition that has changed since the request is dropped.

The recovery of a follower whose offset the leader does not have is Kafka's fetchOffsetAndTruncate.
A leader whose log ends before the follower's was elected without the follower's records: they go.
Otherwise the leader has deleted its oldest records: the follower begins where the leader does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from kvorum.broker.epoch_end_offset import EpochEndOffset, truncation_offset
from kvorum.broker.fetcher.fetch_requests import (
    FetcherSettings,
    PartitionFetchState,
    fetch_request,
    initial_fetch_state,
    list_offsets_request,
)
from kvorum.broker.partition import Partition
from kvorum.broker.quota.replication_quota_manager import ReplicationQuotaManager
from kvorum.storage.errors import StorageError, TooManyOpenFilesError
from kvorum.storage.log.disk_queue import DiskQueue
from kvorum.storage.log.producer_state import ProducerError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import CorruptBatchError
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

LATEST: Final = -1
EARLIEST: Final = -2
LEFT_OUT_WAIT_MS: Final = 50
"""The longest wait at the leader while a partition waits for its disk, for the next request."""
Key = tuple[bytes, int]


class OffsetSearch(NamedTuple):
    """Partitions whose leader is asked for one of its offsets, the latest one first."""

    states: Sequence[PartitionFetchState]
    timestamp: int = LATEST

    def request(self, broker_id: int) -> ListOffsetsRequest:
        """Return the request for the leader."""
        return list_offsets_request(self.states, self.timestamp, broker_id=broker_id)

    def on_response(
        self, fetcher: ReplicaFetcher, response: ListOffsetsResponse, now_ms: float
    ) -> OffsetSearch | None:
        """Truncate; return the next search, None after the last one."""
        answers = {
            (topic.name, one.partition_index): one
            for topic in response.topics
            for one in topic.partitions
        }
        undecided: list[PartitionFetchState] = []
        for asked in self.states:
            answer = answers.get(asked.partition.topic_partition)
            state = fetcher.current(asked.partition.key, asked, now_ms)
            if state is None:
                continue
            if answer is None or answer.error_code != ErrorCode.NONE:
                code = ErrorCode.UNKNOWN_SERVER_ERROR if answer is None else answer.error_code
                fetcher.on_error(state, code, now_ms)
            elif not self._truncate(fetcher, state, answer):
                undecided.append(state)
        return OffsetSearch(undecided, EARLIEST) if undecided else None

    def _truncate(
        self,
        fetcher: ReplicaFetcher,
        state: PartitionFetchState,
        answer: ListOffsetsResponse.ListOffsetsPartitionResponse,
    ) -> bool:
        """Return whether the leader's offset was enough to know what to do."""
        end_offset = state.partition.log.log_end_offset
        if self.timestamp == LATEST:
            if answer.offset >= end_offset:
                return False
            fetcher.truncate(state, answer.offset)
            return True
        if answer.offset > end_offset:
            fetcher.truncate(state, answer.offset, fully=True)
        return True


class Fetch(NamedTuple):
    """A request, and the state in which each of its partitions was then."""

    request: FetchRequest
    asked: Mapping[Key, PartitionFetchState]


class ReplicaFetcher:
    """The states of the partitions; those that got data least recently come first in a request.

    `on_problem` is called with a partition and a sentence about what happened to it; `wall_ms`
    returns the time of day. Throttled partitions are not fetched while `quota` is exceeded, unless
    they are in sync (KIP-73).
    """

    def __init__(
        self,
        settings: FetcherSettings,
        on_problem: Callable[[Partition, str], None],
        wall_ms: Callable[[], int],
        quota: ReplicationQuotaManager | None = None,
    ) -> None:
        self._settings = settings
        self._on_problem = on_problem
        self._wall_ms = wall_ms
        self._quota = quota
        self._states: dict[Key, PartitionFetchState] = {}
        self._lags: dict[Key, int] = {}
        self.failed: set[Key] = set()
        """Partitions that wait for another leader epoch, after an error that would come again."""

    @property
    def keys(self) -> frozenset[Key]:
        """The partitions that are fetched."""
        return frozenset(self._states)

    @property
    def partitions(self) -> Sequence[Partition]:
        """The partitions that are fetched, in the order of their requests."""
        return [state.partition for state in self._states.values()]

    def is_fetched(self, key: Key) -> bool:
        """Return whether a partition is fetched."""
        return key in self._states

    def writes_behind(self) -> Iterator[DiskQueue]:
        """Yield the writes of logs that have to be done before these are fetched again."""
        writes = (state.partition.log.writes for state in self._states.values())
        return (each for each in writes if each.is_behind)

    @property
    def is_stored(self) -> bool:
        """Whether all that was fetched is in the files of its logs, or has failed to get there."""
        return next(self.writes_behind(), None) is None

    @property
    def max_lag(self) -> int:
        """The records by which the slowest partition is behind its high watermark."""
        return max(self._lags.values(), default=0)

    def add(self, partition: Partition, leader_epoch: int) -> None:
        """Fetch a partition in a leader epoch; in the epoch that is known it goes on as before."""
        self.failed.discard(partition.key)
        known = self._states.get(partition.key)
        if known is None or known.leader_epoch != leader_epoch:
            self._put_last(initial_fetch_state(partition, leader_epoch))

    def remove(self, key: Key) -> None:
        """Fetch a partition no longer; a response that is under way does not change it any more."""
        self._states.pop(key, None)
        self._lags.pop(key, None)
        self.failed.discard(key)

    def fetch(self, now_ms: float, *, version: int, broker_epoch: int) -> Fetch | None:
        """Return the request to send, None while no partition is ready.

        The leader answers soon while a partition waits for its disk, which has no part in this
        request. A log that knows no epoch is truncated to its high watermark first.
        """
        for state in tuple(self._states.values()):
            if state.must_truncate and not state.is_truncating:
                self.truncate(state, state.fetch_offset)
        asked = {
            key: state
            for key, state in self._states.items()
            if state.is_ready(now_ms) and not self._should_throttle(state, now_ms)
        }
        if not asked:
            return None
        settings = self._settings
        if len(asked) < len(self._states) and not self.is_stored:
            wait_ms_max = min(settings.wait_ms_max, LEFT_OUT_WAIT_MS)
            settings = settings._replace(wait_ms_max=wait_ms_max)
        request = fetch_request(
            asked.values(), settings, version=version, broker_epoch=broker_epoch
        )
        return Fetch(request, asked)

    def next_due_ms(self, now_ms: float) -> float:
        """Return when `fetch` should be called again after it has returned None."""
        latest = now_ms + self._settings.backoff_ms
        # The quota holds back the replicas that are due already.
        later = (state.due_ms for state in self._states.values() if state.due_ms > now_ms)
        return min((latest, *later))

    def _should_throttle(self, state: PartitionFetchState, now_ms: float) -> bool:
        quota = self._quota
        return (
            quota is not None
            and not state.is_replica_in_sync
            and quota.is_throttled(state.partition.topic_partition)
            and quota.is_quota_exceeded(now_ms)
        )

    def on_failure(self, now_ms: float) -> None:
        """Let every partition wait: the leader has not answered."""
        self._delay(tuple(self._states), now_ms)

    def on_response(
        self, fetch: Fetch, response: FetchResponse, now_ms: float
    ) -> list[PartitionFetchState]:
        """Take in a response; return the partitions whose offset the leader does not have.

        Their owner asks the leader for its offsets (see `OffsetSearch`).
        """
        if response.error_code != ErrorCode.NONE:
            self.on_failure(now_ms)
            return []
        out_of_range: list[PartitionFetchState] = []
        for topic in response.responses:
            for data in topic.partitions:
                key = topic.topic_id, data.partition_index
                state = self.current(key, fetch.asked.get(key), now_ms)
                if state is None:
                    continue
                if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    out_of_range.append(state)
                elif data.error_code != ErrorCode.NONE:
                    self.on_error(state, data.error_code, now_ms)
                elif data.diverging_epoch.end_offset >= 0 or data.diverging_epoch.epoch >= 0:
                    self._on_divergence(state, data)
                else:
                    self._on_data(state, data, now_ms)
        return out_of_range

    def current(
        self, key: Key, asked: PartitionFetchState | None, now_ms: float
    ) -> PartitionFetchState | None:
        """Return the state of a partition; None if it is another than when it was asked about."""
        state = self._states.get(key)
        if state is None or asked is None:
            return None
        return state if state.is_same_fetch(asked) and state.is_ready(now_ms) else None

    def on_error(self, state: PartitionFetchState, code: int, now_ms: float) -> None:
        """Wait after an error of a leader, or for another leader epoch if this one is over."""
        if code == ErrorCode.FENCED_LEADER_EPOCH:
            # The state is the one that was asked about, so no later epoch is known here yet.
            self._fail(state, "The leader is of a later epoch")
        else:
            self._delay((state.partition.key,), now_ms)

    def truncate(self, state: PartitionFetchState, offset: int, *, fully: bool = False) -> None:
        """Truncate a log to `offset`, or wholly so that it starts there; fetch from its end on."""
        try:
            state.partition.truncate_to(offset, now_ms=self._wall_ms(), fully=fully)
        except StorageError as error:
            self._fail(state, f"The log cannot be truncated: {error}")
            return
        self._states[state.partition.key] = replace(state, is_truncating=True)
        state.partition.log.writes.when_done(partial(self._on_truncated, state))

    def _on_truncated(self, state: PartitionFetchState) -> None:
        """Fetch from the end of the truncated log on, unless the partition has changed since."""
        known = self._states.get(state.partition.key)
        # A failure of the leader may have delayed the next fetch meanwhile.
        if known is None or not known.is_same_fetch(state):
            return
        if known.partition.log.writes.has_failed:
            self._fail(known, "The log cannot be truncated")
        else:
            self._states[known.partition.key] = known.at_end_of_log()

    def _on_divergence(self, state: PartitionFetchState, data: FetchResponse.PartitionData) -> None:
        """Truncate. The response's high watermark is not taken: it may lie above the new end."""
        leader = EpochEndOffset(data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
        log = state.partition.log
        offset = truncation_offset(leader, log.local_log, fallback=state.fetch_offset)
        if offset < log.high_watermark:
            self._on_problem(
                state.partition,
                f"The log is truncated to {offset}, below the high watermark {log.high_watermark}",
            )
        self.truncate(state, offset)

    def _on_data(
        self, state: PartitionFetchState, data: FetchResponse.PartitionData, now_ms: float
    ) -> None:
        partition = state.partition
        log = partition.log
        if state.fetch_offset != log.log_end_offset:
            self._fail(state, f"Offset {state.fetch_offset} is not the end {log.log_end_offset}")
            return
        records, wall_ms = data.records or b"", self._wall_ms()
        try:
            last = partition.append_records_to_follower(
                records, leader_epoch=state.leader_epoch, wall_ms=wall_ms
            )
            partition.follow_leader(data.high_watermark, data.log_start_offset, wall_ms=wall_ms)
        except CorruptBatchError as error:
            # The leader may have read while its log changed: the next response may be sound.
            problem = f"The leader returned corrupt records: {error}"
            self._fetch_again_later(state, problem, now_ms)
        except TooManyOpenFilesError as error:
            problem = f"Records cannot be appended for now: {error}"
            self._fetch_again_later(state, problem, now_ms)
        except (StorageError, ProducerError) as error:
            self._fail(state, f"Records cannot be appended: {error}")
        else:
            last_epoch = None if last is None else last.partition_leader_epoch
            if last_epoch is not None or state.lag is None:
                self._put_last(state.behind(last_epoch, data.high_watermark))
            self._lags[partition.key] = max(data.high_watermark - log.log_end_offset, 0)
            # As in Kafka, what replicas in sync get counts too.
            quota = self._quota
            if quota is not None and quota.is_throttled(partition.topic_partition):
                quota.record(len(records), now_ms)

    def _fetch_again_later(self, state: PartitionFetchState, problem: str, now_ms: float) -> None:
        """Go on after a delay with what the log lacks: a part of it may have been appended."""
        self._on_problem(state.partition, problem)
        self._states[state.partition.key] = state.at_end_of_log()
        self._delay((state.partition.key,), now_ms)

    def _fail(self, state: PartitionFetchState, problem: str) -> None:
        self._states.pop(state.partition.key, None)
        self._lags.pop(state.partition.key, None)
        self.failed.add(state.partition.key)
        self._on_problem(state.partition, problem)

    def _delay(self, keys: Iterable[Key], now_ms: float) -> None:
        due_ms = now_ms + self._settings.backoff_ms
        for key in keys:
            state = self._states[key]
            if state.due_ms <= now_ms:
                self._states[key] = replace(state, due_ms=due_ms)

    def _put_last(self, state: PartitionFetchState) -> None:
        self._states.pop(state.partition.key, None)
        self._states[state.partition.key] = state
