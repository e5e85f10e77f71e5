"""Requests to a transaction's coordinator, and its answers."""

import pytest

from kvorum.broker.add_partitions_to_txn import (
    VERIFICATION_KEY,
    PartitionErrors,
    TransactionBatch,
    TransactionData,
    TransactionQueue,
    TransactionSupportedOperation,
    is_verification_enabled,
    operation_of_produce,
    operation_of_txn_offset_commit,
    refusal_of_producer,
)
from kvorum.metadata.effective_configs import BrokerConfigLayers
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_partitions_to_txn import AddPartitionsToTxnResponse

DEFAULT = TransactionSupportedOperation.DEFAULT_ERROR
GENERIC = TransactionSupportedOperation.GENERIC_ERROR_SUPPORTED
ADD = TransactionSupportedOperation.ADD_PARTITION
FIRST, SECOND = TopicPartition("a", 0), TopicPartition("b", 4)
UNKNOWN_NUMBER = 31_000


class Asked:
    """Transactions in a queue, and the answers that they got, by the place in which they came."""

    def __init__(self) -> None:
        self.queue = TransactionQueue()
        self.answers: list[PartitionErrors | None] = []

    def add(
        self, name: str = "t", *, epoch: int = 0, operation: TransactionSupportedOperation = GENERIC
    ) -> None:
        place = len(self.answers)
        self.answers.append(None)

        def complete(errors: PartitionErrors) -> None:
            assert self.answers[place] is None, "answered twice"
            self.answers[place] = errors

        self.queue.add(TransactionData(name, 7, epoch, (FIRST, SECOND), operation), complete)

    def take(self) -> TransactionBatch:
        batch = self.queue.take()
        assert batch is not None
        return batch


def both(code: ErrorCode) -> PartitionErrors:
    return {FIRST: code, SECOND: code}


def result(
    name: str, *codes: tuple[TopicPartition, int]
) -> AddPartitionsToTxnResponse.AddPartitionsToTxnResult:
    found = AddPartitionsToTxnResponse.AddPartitionsToTxnResult(name)
    for where, code in codes:
        of = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(where.partition, code)
        found.topic_results.append(
            AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(where.topic, [of])
        )
    return found


def test_the_version_of_a_request_says_whether_it_adds_its_partitions() -> None:
    assert [operation_of_produce(version) for version in (10, 11, 12)] == [DEFAULT, GENERIC, ADD]
    commits = [operation_of_txn_offset_commit(version) for version in (3, 4, 5)]
    assert commits == [DEFAULT, GENERIC, ADD]


def test_all_that_waits_for_a_coordinator_is_asked_together() -> None:
    asked = Asked()
    asked.add("old", operation=DEFAULT)
    asked.add("new", operation=ADD, epoch=3)
    batch = asked.take()
    assert asked.queue.take() is None
    old, new = batch.request.transactions
    assert (old.transactional_id, old.verify_only, old.producer_epoch) == ("old", True, 0)
    assert (new.transactional_id, new.verify_only, new.producer_epoch) == ("new", False, 3)
    assert [(topic.name, topic.partitions) for topic in new.topics] == [("a", [0]), ("b", [4])]
    response = AddPartitionsToTxnResponse(
        results_by_transaction=[result("new", (FIRST, 0), (SECOND, 0)), result("old", (SECOND, 3))]
    )
    batch.on_response(response)
    assert asked.answers == [{SECOND: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}, {}]


@pytest.mark.parametrize(
    ("answered", "operation", "expected"),
    [
        (ErrorCode.PRODUCER_FENCED, ADD, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.TRANSACTION_ABORTABLE, DEFAULT, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, GENERIC, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.CONCURRENT_TRANSACTIONS, ADD, ErrorCode.CONCURRENT_TRANSACTIONS),
        (UNKNOWN_NUMBER, ADD, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_producer_gets_a_code_that_it_expects(
    answered: int, operation: TransactionSupportedOperation, expected: ErrorCode
) -> None:
    asked = Asked()
    asked.add(operation=operation)
    response = AddPartitionsToTxnResponse(results_by_transaction=[result("t", (FIRST, answered))])
    asked.take().on_response(response)
    assert asked.answers == [{FIRST: expected}]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.NONE, ErrorCode.NETWORK_EXCEPTION),
    ],
    ids=["of this broker", "of the coordinator", "the transaction is left out"],
)
def test_an_answer_about_no_transaction_is_one_about_all(
    code: ErrorCode, expected: ErrorCode
) -> None:
    asked = Asked()
    asked.add("one")
    asked.add("two")
    asked.take().on_response(AddPartitionsToTxnResponse(error_code=code))
    assert asked.answers == [both(expected), both(expected)]


def test_a_coordinator_that_cannot_be_asked_lets_everything_pass() -> None:
    asked = Asked()
    asked.add()
    batch = asked.take()
    batch.skip()
    batch.fail(ErrorCode.NETWORK_EXCEPTION)
    assert asked.answers == [{}]


def test_of_two_that_wait_with_one_id_the_later_epoch_stays() -> None:
    asked = Asked()
    for epoch in (1, 1, 2, 0):
        asked.add(epoch=epoch)
    assert asked.answers == [
        both(ErrorCode.NETWORK_EXCEPTION),
        both(ErrorCode.INVALID_PRODUCER_EPOCH),
        None,
        both(ErrorCode.INVALID_PRODUCER_EPOCH),
    ]
    (left,) = asked.take().request.transactions
    assert left.producer_epoch == 2


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    ],
)
def test_what_will_pass_is_repeated_by_every_producer(code: ErrorCode) -> None:
    refusal = refusal_of_producer(code, GENERIC)
    assert refusal.code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert (refusal.message or "").endswith(f"Underlying error: {code.name}")


def test_other_refusals_stay_as_they_are() -> None:
    concurrent = ErrorCode.CONCURRENT_TRANSACTIONS
    assert refusal_of_producer(concurrent, ADD) == (concurrent, None)
    fenced = ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal_of_producer(fenced, DEFAULT) == (fenced, None)
    unknown = refusal_of_producer(ErrorCode.INVALID_TXN_STATE, ADD)
    assert unknown.code is ErrorCode.INVALID_TXN_STATE
    assert unknown.message == "Partition was not added to the transaction"


@pytest.mark.parametrize(
    ("node", "cluster", "static", "expected"),
    [
        (None, None, None, True),
        (None, None, "false", False),
        (None, "true", "false", True),
        ("false", "true", "true", False),
        (None, "neither", "false", True),
    ],
)
def test_the_nearest_value_says_whether_it_is_asked(
    node: str | None, cluster: str | None, static: str | None, *, expected: bool
) -> None:
    layers = (
        {} if value is None else {VERIFICATION_KEY: value} for value in (node, cluster, static)
    )
    assert is_verification_enabled(BrokerConfigLayers(*layers)) is expected
