"""One request at a time, and the partitions in it."""

from kvorum.broker.partition_leader.alter_partition_manager import AlterPartitionManager
from kvorum.broker.partition_leader.outcomes import Accepted, Refused
from kvorum.broker.partition_leader.partition_state import IsrProposal
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

ONE, TWO = b"1" * 16, b"2" * 16


def proposal(topic_id: bytes = ONE, index: int = 0) -> IsrProposal:
    return IsrProposal(
        topic_id=topic_id,
        partition_index=index,
        leader_epoch=3,
        partition_epoch=4,
        isr=((1, 11), (2, -1)),
    )


def sent(queue: AlterPartitionManager, now_ms: float = 0) -> AlterPartitionRequest:
    request = queue.due(now_ms, broker_epoch=11)
    assert request is not None
    return request


def answer(*partitions: tuple[IsrProposal, ErrorCode]) -> AlterPartitionResponse:
    response = AlterPartitionResponse()
    for one, code in partitions:
        data = AlterPartitionResponse.PartitionData(
            partition_index=one.partition_index,
            error_code=code,
            leader_id=1,
            leader_epoch=3,
            isr=[1, 2],
            partition_epoch=5,
        )
        response.topics.append(AlterPartitionResponse.TopicData(one.topic_id, [data]))
    return response


def test_all_that_waits_goes_in_one_request() -> None:
    queue = AlterPartitionManager(1)
    assert queue.next_due_ms() is None
    for topic_id, index in ((TWO, 0), (ONE, 1), (ONE, 0)):
        assert queue.submit(proposal(topic_id, index))
    request = sent(queue)
    assert (request.broker_id, request.broker_epoch) == (1, 11)
    assert [(topic.topic_id, len(topic.partitions)) for topic in request.topics] == [
        (ONE, 2),
        (TWO, 1),
    ]
    data = request.topics[0].partitions[0]
    assert (data.leader_epoch, data.partition_epoch, data.leader_recovery_state) == (3, 4, 0)
    assert [(one.broker_id, one.broker_epoch) for one in data.new_isr_with_epochs] == [
        (1, 11),
        (2, -1),
    ]
    assert AlterPartitionRequest.decode(request.encode(3), 3) == request


def test_the_next_request_waits_for_the_answer() -> None:
    queue, first, second = AlterPartitionManager(1), proposal(), proposal(TWO)
    queue.submit(first)
    sent(queue)
    queue.submit(second)
    assert queue.due(99_999, broker_epoch=11) is None
    assert queue.next_due_ms() is None
    answered = queue.on_response(answer((first, ErrorCode.NONE)), 5)
    assert [one.proposal for one in answered] == [first]
    assert answered[0].answer == Accepted(
        leader_epoch=3, partition_epoch=5, isr=(1, 2), recovery_state=0
    )
    assert [topic.topic_id for topic in sent(queue, 5).topics] == [TWO]


def test_a_partition_waits_once() -> None:
    queue = AlterPartitionManager(1)
    assert queue.submit(proposal())
    assert not queue.submit(proposal())
    sent(queue)
    assert not queue.submit(proposal())


def test_an_error_of_one_partition_is_its_own() -> None:
    queue, first, second = AlterPartitionManager(1), proposal(), proposal(TWO)
    queue.submit(first)
    queue.submit(second)
    sent(queue)
    response = answer((first, ErrorCode.INELIGIBLE_REPLICA), (second, ErrorCode.NONE))
    answered = {one.proposal: one.answer for one in queue.on_response(response, 0)}
    assert answered[first] == Refused(ErrorCode.INELIGIBLE_REPLICA)
    assert isinstance(answered[second], Accepted)
    assert queue.next_due_ms() is None


def test_a_refusal_of_everything_is_tried_again_with_the_epoch_of_then() -> None:
    queue = AlterPartitionManager(1)
    queue.submit(proposal())
    sent(queue)
    refusal = AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    assert queue.on_response(refusal, 100) == []
    queue.submit(proposal(TWO))
    assert queue.next_due_ms() == 150
    assert queue.due(149, broker_epoch=12) is None
    request = queue.due(150, broker_epoch=12)
    assert request is not None
    assert request.broker_epoch == 12
    assert len(request.topics) == 2


def test_a_broken_connection_repeats_the_very_request() -> None:
    queue = AlterPartitionManager(1)
    queue.submit(proposal())
    request = sent(queue)
    queue.submit(proposal(TWO))
    queue.on_disconnected(10)
    assert queue.due(59, broker_epoch=12) is None
    assert queue.due(60, broker_epoch=12) is request
    assert queue.due(60, broker_epoch=12) is None


def test_a_partition_that_is_not_answered_is_asked_for_again() -> None:
    queue, first, second = AlterPartitionManager(1), proposal(), proposal(TWO)
    queue.submit(first)
    queue.submit(second)
    sent(queue)
    queue.on_response(answer((first, ErrorCode.NONE)), 0)
    assert [topic.topic_id for topic in sent(queue).topics] == [TWO]


def test_an_unknown_recovery_state_or_code_is_an_error_of_the_server() -> None:
    queue, first = AlterPartitionManager(1), proposal()
    for change in ({"leader_recovery_state": 7}, {"error_code": 9_999}):
        queue.submit(first)
        sent(queue)
        response = answer((first, ErrorCode.NONE))
        for name, value in change.items():
            setattr(response.topics[0].partitions[0], name, value)
        (answered,) = queue.on_response(response, 0)
        assert answered.answer == Refused(ErrorCode.UNKNOWN_SERVER_ERROR)


def test_an_answer_to_nothing_is_nothing() -> None:
    assert AlterPartitionManager(1).on_response(answer((proposal(), ErrorCode.NONE)), 0) == []
