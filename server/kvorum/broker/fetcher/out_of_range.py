"""The recovery of a follower whose offset the leader does not have (fetchOffsetAndTruncate).

A leader whose log ends before the follower's was elected without the follower's records: they go.
Otherwise the leader has deleted its oldest records: the follower begins where the leader does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from kvorum.broker.fetcher.fetch_requests import list_offsets_request
from kvorum.broker.fetcher.partition_fetch_state import PartitionFetchState
from kvorum.broker.fetcher.replica_fetcher import ReplicaFetcher
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

LATEST: Final = -1
EARLIEST: Final = -2


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
        end_offset = state.partition.log.local_log.log_end_offset
        if self.timestamp == LATEST:
            if answer.offset >= end_offset:
                return False
            fetcher.truncate(state, answer.offset)
            return True
        if answer.offset > end_offset:
            fetcher.truncate(state, answer.offset, fully=True)
        return True
