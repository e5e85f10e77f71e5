"""The leader's question to a transaction's coordinator, and its answers (KIP-890).

Pure: `TransactionQueue` holds what waits to be asked of one coordinator, one request for each
transactional id; `TransactionBatch` is what one AddPartitionsToTxn asks together. They are used
where `is_verification_enabled`.

Names are those of Kafka's AddPartitionsToTxnManager.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from kvorum.metadata.config_definitions import BROKER_CONFIGS, InvalidConfigError, parse_value
from kvorum.metadata.effective_configs import BrokerConfigLayers
from kvorum.metadata.known_error_code import known_error_code
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)

VERIFICATION_KEY: Final = "transaction.partition.verification.enable"
FIRST_VERSION_OF_BROKERS: Final = 4
"""The first version of AddPartitionsToTxn that one broker sends to another."""
_TEMPORARY: Final = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
PartitionErrors: TypeAlias = Mapping[TopicPartition, ErrorCode]
"""The coordinator's refusals; a partition that is missing is in the transaction."""
Complete: TypeAlias = Callable[[PartitionErrors], None]
"""Takes the answer about one transaction."""


def is_verification_enabled(layers: BrokerConfigLayers) -> bool:
    """Return whether a first batch has to be verified; it has to with a value that is not valid."""
    definition = BROKER_CONFIGS[VERIFICATION_KEY]
    for values in (layers.node, layers.cluster, layers.static):
        if VERIFICATION_KEY in values:
            try:
                return parse_value(definition, values[VERIFICATION_KEY]) is not False
            except InvalidConfigError:
                return True
    return True


class TransactionSupportedOperation(Enum):
    """The coordinator's choices and answers by the version of a client's request.

    Up to GENERIC_ERROR_SUPPORTED the client has added its partitions before, and the coordinator
    only looks. With ADD_PARTITION the request itself adds them.
    """

    DEFAULT_ERROR = "default error"
    GENERIC_ERROR_SUPPORTED = "generic error supported"
    ADD_PARTITION = "add partition"

    @property
    def supports_epoch_bump(self) -> bool:
        """Whether each transaction of the producer has an epoch of its own."""
        return self is TransactionSupportedOperation.ADD_PARTITION


def operation_of_produce(version: int) -> TransactionSupportedOperation:
    """Return the operation of a version of Produce."""
    return _operation(version, generic_error_since=11, adds_since=12)


def operation_of_txn_offset_commit(version: int) -> TransactionSupportedOperation:
    """Return the operation of a version of TxnOffsetCommit."""
    return _operation(version, generic_error_since=4, adds_since=5)


def _operation(
    version: int, *, generic_error_since: int, adds_since: int
) -> TransactionSupportedOperation:
    if version >= adds_since:
        return TransactionSupportedOperation.ADD_PARTITION
    if version >= generic_error_since:
        return TransactionSupportedOperation.GENERIC_ERROR_SUPPORTED
    return TransactionSupportedOperation.DEFAULT_ERROR


class ProducerRefusal(NamedTuple):
    """The code for a producer, and its text; None where the code says enough."""

    code: ErrorCode
    message: str | None


def refusal_of_producer(
    code: ErrorCode, operation: TransactionSupportedOperation
) -> ProducerRefusal:
    """Return what a producer is answered where its partition could not be verified.

    Older producers do not repeat a request upon every error that will pass: those become
    NOT_ENOUGH_REPLICAS, upon which they do, without asking for metadata.
    """
    if code is ErrorCode.INVALID_TXN_STATE:
        return ProducerRefusal(code, "Partition was not added to the transaction")
    is_concurrent = code is ErrorCode.CONCURRENT_TRANSACTIONS
    if code in _TEMPORARY or (is_concurrent and not operation.supports_epoch_bump):
        return ProducerRefusal(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            "Unable to verify the partition has been added to the transaction. "
            f"Underlying error: {code.name}",
        )
    return ProducerRefusal(code, None)


class TransactionData(NamedTuple):
    """A producer's transaction, and the partitions that it writes to."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]
    operation: TransactionSupportedOperation

    def errors(self, code: ErrorCode) -> PartitionErrors:
        """Return one code for every partition."""
        return dict.fromkeys(self.partitions, code)


class _Waiting(NamedTuple):
    """A transaction, and who waits for the answer about it."""

    data: TransactionData
    complete: Complete


class TransactionBatch:
    """Transactions that are asked about together; each is answered once."""

    def __init__(self, waiting: Iterable[_Waiting]) -> None:
        self._waiting = {one.data.transactional_id: one for one in waiting}

    @property
    def request(self) -> AddPartitionsToTxnRequest:
        """The question; its form is that of `FIRST_VERSION_OF_BROKERS` and above."""
        return AddPartitionsToTxnRequest(
            transactions=[_transaction(one.data) for one in self._waiting.values()]
        )

    def on_response(self, response: AddPartitionsToTxnResponse) -> None:
        """Hand each transaction its results; one that the response leaves out has to ask again."""
        if response.error_code != ErrorCode.NONE:
            # The producer is not the one that lacks the permission.
            is_denied = response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            code = (
                ErrorCode.INVALID_TXN_STATE if is_denied else known_error_code(response.error_code)
            )
            self.fail(code)
            return
        for result in response.results_by_transaction:
            waiting = self._waiting.pop(result.transactional_id, None)
            if waiting is None:
                continue
            waiting.complete(
                {
                    TopicPartition(topic.name, one.partition_index): _code_of_producer(
                        one.partition_error_code, waiting.data.operation
                    )
                    for topic in result.topic_results
                    for one in topic.results_by_partition
                    if one.partition_error_code != ErrorCode.NONE
                }
            )
        self.fail(ErrorCode.NETWORK_EXCEPTION)

    def fail(self, code: ErrorCode) -> None:
        """Refuse what has no answer yet."""
        waiting, self._waiting = self._waiting, {}
        for one in waiting.values():
            one.complete(one.data.errors(code))

    def skip(self) -> None:
        """Let everything pass: the coordinator is too old to be asked."""
        waiting, self._waiting = self._waiting, {}
        for one in waiting.values():
            one.complete({})


class TransactionQueue:
    """Items that wait until the request before them is answered; one for each transactional id."""

    def __init__(self) -> None:
        self._waiting: dict[str, _Waiting] = {}

    def add(self, data: TransactionData, complete: Complete) -> None:
        """Have a transaction wait; of two with one id, the one of the higher epoch stays.

        Of two with one epoch the later one stays: its client sends again what it sent before.
        """
        known = self._waiting.get(data.transactional_id)
        if known is not None and known.data.producer_epoch > data.producer_epoch:
            complete(data.errors(ErrorCode.INVALID_PRODUCER_EPOCH))
            return
        self._waiting[data.transactional_id] = _Waiting(data, complete)
        if known is not None:
            is_fenced = known.data.producer_epoch < data.producer_epoch
            code = ErrorCode.INVALID_PRODUCER_EPOCH if is_fenced else ErrorCode.NETWORK_EXCEPTION
            known.complete(known.data.errors(code))

    def take(self) -> TransactionBatch | None:
        """Return all that waits, which waits no longer; None for nothing."""
        waiting, self._waiting = self._waiting, {}
        return TransactionBatch(waiting.values()) if waiting else None


def _transaction(data: TransactionData) -> AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction:
    topics: dict[str, list[int]] = {}
    for topic, partition in data.partitions:
        topics.setdefault(topic, []).append(partition)
    return AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
        transactional_id=data.transactional_id,
        producer_id=data.producer_id,
        producer_epoch=data.producer_epoch,
        verify_only=not data.operation.supports_epoch_bump,
        topics=[
            AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name, partitions)
            for name, partitions in topics.items()
        ],
    )


def _code_of_producer(number: int, operation: TransactionSupportedOperation) -> ErrorCode:
    code = known_error_code(number)
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    is_known_to_client = operation is not TransactionSupportedOperation.DEFAULT_ERROR
    if code is ErrorCode.TRANSACTION_ABORTABLE and not is_known_to_client:
        return ErrorCode.INVALID_TXN_STATE
    return code
