"""The ISR and the high watermark as a leader moves them, and its requests, one at a time."""

import pytest
from tests.unit.broker.partition_leader.leader_under_test import PARTITION, Leading, accepted

from kvorum.broker.partition_leader.alter_partition_manager import AlterPartitionManager
from kvorum.broker.partition_leader.leader import CommittedPartitionState, IsrProposal
from kvorum.broker.partition_leader.outcomes import Accepted, LeaderRefusesError, Refused
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

ONE, TWO = b"1" * 16, b"2" * 16


@pytest.fixture
def leading() -> Leading:
    return Leading()


def expansion(leading: Leading) -> IsrProposal:
    """Have 2 catch up and 3 ask to join."""
    leading.fetch(2, 10)
    proposal = leading.fetch(3, 10)
    assert proposal is not None
    return proposal


def test_the_high_watermark_is_where_all_in_sync_are(leading: Leading) -> None:
    leading.append(5)
    leading.fetch(2, 12)
    assert leading.leader.high_watermark == 12
    leading.fetch(2, 15)
    assert leading.leader.high_watermark == 15


def test_the_high_watermark_never_falls(leading: Leading) -> None:
    leading.fetch(2, 10)
    assert leading.leader.high_watermark == 10
    leading.fetch(2, 3)
    assert leading.leader.high_watermark == 10


def test_who_has_everything_of_this_epoch_joins(leading: Leading) -> None:
    proposal = expansion(leading)
    assert proposal.isr == ((1, leading.epoch(1)), (2, leading.epoch(2)), (3, leading.epoch(3)))
    assert (proposal.leader_epoch, proposal.partition_epoch) == (5, 7)


def test_no_follower_joins_from_below_the_start_of_the_epoch(leading: Leading) -> None:
    """Though 3 is above the high watermark: what lies between may be committed."""
    assert leading.leader.high_watermark == 8
    assert leading.fetch(3, 9) is None
    assert leading.fetch(3, 10) is not None


def test_no_follower_joins_from_below_the_high_watermark(leading: Leading) -> None:
    leading.append(5)
    leading.fetch(2, 15)
    assert leading.fetch(3, 14) is None


def test_who_is_to_join_counts_at_once(leading: Leading) -> None:
    expansion(leading)
    leading.append(5)
    leading.fetch(2, 15)
    assert leading.leader.high_watermark == 10
    leading.fetch(3, 15)
    assert leading.leader.high_watermark == 15


def test_who_is_to_leave_counts_to_the_end(leading: Leading) -> None:
    leading = Leading(PARTITION._replace(isr=(1, 2, 3)))
    leading.append(5)
    leading.now_ms += 101
    leading.fetch(2, 15)
    proposal = leading.leader.shrink(leading.now_ms)
    assert proposal is not None
    assert [member for member, _ in proposal.isr] == [1, 2]
    assert leading.leader.high_watermark == 8
    leading.answer(proposal, accepted(proposal))
    assert leading.leader.high_watermark == 15


def test_who_is_about_to_catch_up_is_waited_for(leading: Leading) -> None:
    """Caught up within the allowed lag and eligible: else it might never get into the ISR."""
    leading.fetch(3, 9)
    leading.append(1)
    leading.fetch(3, 10)
    leading.fetch(2, 11)
    assert leading.leader.high_watermark == 10


def test_lag_is_reported_by_the_last_time_of_having_everything() -> None:
    leading = Leading(PARTITION._replace(isr=(1, 2, 3)))
    leading.fetch(2, 10)
    leading.fetch(3, 10)
    leading.now_ms += 100
    leading.append(1)
    assert leading.shrink() is None
    leading.fetch(2, 11)
    leading.now_ms += 1
    assert leading.shrink() == (1, 2)


def test_who_keeps_up_with_the_last_fetch_is_not_behind() -> None:
    leading = Leading(PARTITION._replace(isr=(1, 2, 3)))
    for _ in range(5):
        leading.now_ms += 60
        leading.append(10)
        leading.fetch(2, leading.log_end_offset - 10)
        leading.fetch(3, leading.log_end_offset - 10)
        assert leading.shrink() is None


def test_one_that_never_fetched_is_reported_with_no_epoch() -> None:
    leading = Leading(PARTITION._replace(isr=(1, 2, 3)))
    leading.now_ms += 101
    leading.append(1)
    leading.fetch(3, 11)
    assert leading.shrink() is not None
    joining = Leading().fetch(3, 10)
    assert joining is not None
    assert joining.isr[1] == (2, -1)


def test_one_change_at_a_time(leading: Leading) -> None:
    expansion(leading)
    leading.append(1)
    leading.now_ms += 1_000
    assert leading.shrink() is None
    assert leading.fetch(3, 10) is None


@pytest.mark.parametrize("state", ["fenced", "shutting down", "another incarnation", "unknown"])
def test_who_may_not_join(leading: Leading, state: str) -> None:
    controller, changes = leading.controller, {}
    if state == "fenced":
        controller.heartbeat(3, want_fence=True)
    elif state == "shutting down":
        controller.create_topic("t", partitions=3, replicas=3)
        controller.heartbeat(3, want_shut_down=True)
        assert controller.image.cluster.brokers[3].is_in_controlled_shutdown
    elif state == "another incarnation":
        changes = {"broker_epoch": leading.epoch(3) + 1}
    else:
        leading = Leading(PARTITION._replace(replicas=(1, 2, 4)))
        leading.controller.register(4)
        assert leading.fetch(4, 10) is None
        return
    assert leading.fetch(3, 10, **changes) is None
    assert leading.leader.state == CommittedPartitionState(frozenset({1, 2}))


def test_fetches_that_are_refused(leading: Leading) -> None:
    refused = {
        ErrorCode.FENCED_LEADER_EPOCH: {"leader_epoch": 4},
        ErrorCode.UNKNOWN_LEADER_EPOCH: {"leader_epoch": 6},
        ErrorCode.NOT_LEADER_OR_FOLLOWER: {"broker_epoch": leading.epoch(3) - 1},
    }
    for code, changes in refused.items():
        with pytest.raises(LeaderRefusesError) as refusal:
            leading.fetch(3, 10, **changes)
        assert refusal.value.code == code
    leading.lead(leading.partition._replace(replicas=(1, 2), partition_epoch=8))
    with pytest.raises(LeaderRefusesError) as refusal:
        leading.fetch(3, 10)
    assert refusal.value.code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_an_accepted_change_is_committed(leading: Leading) -> None:
    proposal = expansion(leading)
    assert leading.answer(proposal, accepted(proposal)) is None
    assert leading.leader.state == CommittedPartitionState(frozenset({1, 2, 3}))
    assert leading.leader.partition_epoch == 8


def test_a_change_that_changes_nothing_is_over_too(leading: Leading) -> None:
    proposal = expansion(leading)
    leading.answer(proposal, accepted(proposal, epochs_ahead=0))
    assert leading.leader.state == CommittedPartitionState(frozenset({1, 2, 3}))


@pytest.mark.parametrize("code", ["INELIGIBLE_REPLICA", "OPERATION_NOT_ATTEMPTED"])
def test_a_change_that_was_certainly_not_made_is_taken_back(leading: Leading, code: str) -> None:
    assert leading.answer(expansion(leading), Refused(ErrorCode[code])) is None
    assert leading.leader.state == CommittedPartitionState(frozenset({1, 2}))


@pytest.mark.parametrize(
    "code",
    [
        *("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID", "FENCED_LEADER_EPOCH"),
        *("INVALID_UPDATE_VERSION", "INVALID_REQUEST", "NEW_LEADER_ELECTED"),
    ],
)
def test_a_change_with_an_unknown_outcome_waits_for_the_log(leading: Leading, code: str) -> None:
    proposal = expansion(leading)
    pending = leading.leader.state
    assert leading.answer(proposal, Refused(ErrorCode[code])) is None
    assert leading.leader.state is pending
    leading.lead(leading.partition._replace(isr=(1, 2, 3), partition_epoch=8))
    assert leading.leader.state == CommittedPartitionState(frozenset({1, 2, 3}))


@pytest.mark.parametrize("code", ["NOT_CONTROLLER", "UNKNOWN_SERVER_ERROR", "REQUEST_TIMED_OUT"])
def test_any_other_refusal_is_tried_again(leading: Leading, code: str) -> None:
    proposal = expansion(leading)
    assert leading.answer(proposal, Refused(ErrorCode[code])) is proposal


def test_an_answer_that_comes_too_late_counts_for_nothing(leading: Leading) -> None:
    proposal = expansion(leading)
    leading.lead(leading.partition._replace(leader_epoch=6, partition_epoch=8))
    assert leading.answer(proposal, accepted(proposal)) is None
    assert leading.answer(proposal, Refused(ErrorCode.NOT_CONTROLLER)) is None
    assert leading.leader.state == CommittedPartitionState(frozenset({1, 2}))


@pytest.mark.parametrize(("leader_epoch", "partition_epoch"), [(4, 9), (6, 9), (5, 6)])
def test_an_answer_of_other_epochs_is_ignored(
    leading: Leading, leader_epoch: int, partition_epoch: int
) -> None:
    proposal = expansion(leading)
    pending = leading.leader.state
    answer = Accepted(
        leader_epoch=leader_epoch, partition_epoch=partition_epoch, isr=(1,), recovery_state=0
    )
    leading.answer(proposal, answer)
    assert leading.leader.state is pending


def test_old_metadata_is_not_followed(leading: Leading) -> None:
    proposal = expansion(leading)
    leading.answer(proposal, accepted(proposal))
    assert not leading.lead(leading.partition._replace(isr=(1,)))
    assert leading.leader.state == CommittedPartitionState(frozenset({1, 2, 3}))


def test_news_of_what_the_answer_said_leave_the_next_change_under_way(leading: Leading) -> None:
    """3 has joined by the answer, 4 is about to: then the log tells that 3 has joined."""
    leading = Leading(PARTITION._replace(replicas=(1, 2, 3, 4), directories=(b"d" * 16,) * 4))
    leading.controller.start_broker(4)
    proposal = expansion(leading)
    leading.answer(proposal, accepted(proposal))
    assert leading.fetch(4, 10) is not None
    assert leading.lead(leading.partition._replace(isr=(1, 2, 3), partition_epoch=8))
    leading.now_ms += 101
    leading.append(5)
    leading.fetch(2, 15)
    leading.fetch(3, 15)
    assert leading.leader.high_watermark == 10


def test_a_new_epoch_of_the_same_leader_begins_again(leading: Leading) -> None:
    leading.append(5)
    leading.fetch(2, 15)
    leading.now_ms += 1_000
    leading.lead(leading.partition._replace(leader_epoch=6, partition_epoch=8))
    assert leading.shrink() is None
    assert leading.fetch(3, 14) is None
    assert leading.fetch(3, 15) is not None


def test_followers_of_another_leader_in_between_have_to_fetch_again(leading: Leading) -> None:
    """It learns of two elections at once: what 2 had fetched before may be truncated."""
    leading.lead(leading.partition._replace(isr=(1, 2, 3), partition_epoch=8))
    leading.append(5)
    leading.fetch(2, 13)
    leading.fetch(3, 10)
    leading.lead(leading.partition._replace(isr=(1, 2), leader_epoch=7, partition_epoch=10))
    assert leading.leader.high_watermark == 10
    leading.fetch(2, 11)
    assert leading.leader.high_watermark == 11


def test_a_leader_has_recovered() -> None:
    assert expansion(Leading(PARTITION._replace(leader_recovery_state=1))).recovery_state == 0


def test_writes_need_enough_in_sync(leading: Leading) -> None:
    leading.leader.check_append()
    leading.lead(leading.partition._replace(isr=(1,), partition_epoch=8))
    with pytest.raises(LeaderRefusesError) as refusal:
        leading.leader.check_append()
    assert refusal.value.code == ErrorCode.NOT_ENOUGH_REPLICAS


def test_the_high_watermark_stands_still_below_the_minimum(leading: Leading) -> None:
    leading.lead(leading.partition._replace(isr=(1,), partition_epoch=8))
    leading.append(5)
    assert leading.leader.high_watermark == 8
    alone = Leading(PARTITION._replace(replicas=(1,), isr=(1,), directories=(b"d" * 16,)))
    assert alone.leader.high_watermark == 10


def test_when_a_write_is_answered(leading: Leading) -> None:
    leading.append(1)
    assert leading.leader.check_acks_all(11) is None
    leading.fetch(2, 11)
    assert leading.leader.check_acks_all(11) == ErrorCode.NONE
    leading.lead(leading.partition._replace(isr=(1,), partition_epoch=8))
    assert leading.leader.check_acks_all(11) == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


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
