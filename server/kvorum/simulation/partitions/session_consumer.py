"""A consumer that fetches in sessions: it names what has changed since the last fetch (KIP-227)."""

from typing import Final

from kvorum.broker.fetch_session.session import FULL, NO_SESSION, next_epoch
from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.clients import READ_BYTES, PartitionClient
from kvorum.simulation.partitions.settings import TOPIC, TOPIC_ID
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.primitives import Message
from kvorum.wire.records import read_batches

FIRST_WITH_SESSIONS: Final = 7
WAIT_MS: Final = 50
MOVES_ON: Final = 0.03
"""The share of its steps with which it goes to another broker, in a session of its own there."""
PAUSES: Final = 0.2
"""The share of its partitions from which it reads nothing for now (KafkaConsumer.pause)."""
FIRST_OFFSET_MAX: Final = 500


class SessionConsumer(PartitionClient):
    """Reads the partitions that one broker leads, but for some, each from an offset of its own.

    It does what Kafka's FetchSessionHandler does, and checks what that checks.
    """

    def __init__(self, around: BrokerSurroundings) -> None:
        super().__init__(around, 0)
        self._version = self.version_of(FetchRequest, lowest=FIRST_WITH_SESSIONS)
        self._offsets = dict.fromkeys(range(around.settings.partitions), 0)
        self._is_waiting = False
        self._broker: int | None = None
        self._session_id = NO_SESSION
        self._epoch = FULL
        self._known: dict[int, int] = {}
        """The partitions of the session, and the offsets that were asked for last."""

    def step(self) -> None:
        """Fetch once more, from the same broker or another one."""
        random = self.around.random
        topic = self.known_topic()
        if self._is_waiting or topic is None:
            return
        leaders = {one.leader for one in topic.partitions.values() if one.has_leader}
        if self._broker not in leaders or random.random() < MOVES_ON:
            self._broker, self._session_id = random.choice([*sorted(leaders), None]), NO_SESSION
            self._begin_again()
        if self._broker is None:
            return
        wanted = {
            index: self._offsets[index]
            for index, one in topic.partitions.in_order()
            if one.leader == self._broker and random.random() >= PAUSES
        }
        if wanted:
            self._fetch(self._broker, wanted)

    def _begin_again(self) -> None:
        """Let the next fetch be a full one, which ends the session that there may be."""
        self._epoch = FULL
        self._known = {}

    def _fetch(self, broker: int, wanted: dict[int, int]) -> None:
        self._is_waiting = True
        changed = [index for index in wanted if self._known.get(index) != wanted[index]]
        forgotten = [index for index in self._known if index not in wanted]
        asked = [
            FetchRequest.FetchPartition(
                partition=index, fetch_offset=wanted[index], partition_max_bytes=READ_BYTES
            )
            for index in changed
        ]
        request = FetchRequest(
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_bytes=READ_BYTES,
            session_id=self._session_id,
            session_epoch=self._epoch,
            topics=[FetchRequest.FetchTopic(TOPIC, TOPIC_ID, asked)] if asked else [],
            forgotten_topics_data=(
                [FetchRequest.ForgottenTopic(TOPIC, TOPIC_ID, forgotten)] if forgotten else []
            ),
        )
        self._known = wanted

        def on_answer(answer: Message | None) -> None:
            self._is_waiting = False
            if isinstance(answer, FetchResponse):
                self._on_answer(answer, broker)
            else:
                self._begin_again()

        self.ask(broker, request, on_answer, lowest=FIRST_WITH_SESSIONS)

    def _on_answer(self, answer: FetchResponse, broker: int) -> None:
        if answer.error_code != ErrorCode.NONE:
            if answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._session_id = NO_SESSION
            self._begin_again()
            return
        asked, is_full = self._known, self._epoch == FULL
        answered = [data for topic in answer.responses for data in topic.partitions]
        named = {data.partition_index for data in answered}
        message = f"session {self._session_id} of broker {broker}: {asked}, answered {answered}"
        is_right = named == asked.keys() if is_full else named <= asked.keys()
        self.around.checks.demand(promises.SESSION_ANSWERED, message, holds=is_right)
        self._session_id = answer.session_id
        if answer.session_id == NO_SESSION:
            self._begin_again()
        else:
            self._epoch = next_epoch(self._epoch)
            self.around.ledger.counts["incremental fetches"] += not is_full
        for data in answered:
            self._on_data(data, asked[data.partition_index], message)

    def _on_data(self, data: FetchResponse.PartitionData, offset: int, message: str) -> None:
        index = data.partition_index
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._offsets[index] = self.around.random.randint(0, FIRST_OFFSET_MAX)
        if data.error_code != ErrorCode.NONE:
            return
        read = list(read_batches(memoryview(data.records or b""), is_cut_allowed=True))
        if read:
            is_right = read[-1].last_offset >= offset
            self.around.checks.demand(promises.SESSION_ANSWERED, message, holds=is_right)
            self.around.ledger.on_read(index, read, message=message)
            self._offsets[index] = read[-1].next_offset
