"""The active controller: when it answers, that it works in pieces, and operations that fail."""

import asyncio
import logging
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from tests.node.raft.cluster import Lab, Replica
from tests.support.controller_under_test import SETTINGS, started_cluster

from kvorum.controller.api import ControllerResult, Pieces
from kvorum.controller.periodic_tasks import no_op
from kvorum.controller.quorum_reassignment.quorum_targets import alter_target_voters
from kvorum.controller.requests import controller_api
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.api import RequestError
from kvorum.metadata.bootstrap import bootstrap_from_features
from kvorum.metadata.features import kafka_feature_levels
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.metadata.record_frame import RecordAndVersion, decode_record
from kvorum.metadata.standard_authorizer import ANONYMOUS, UNRESTRICTED
from kvorum.node.asyncio_runtime import AsyncioRuntime
from kvorum.node.clock import SystemClock
from kvorum.node.config import NodeConfig
from kvorum.node.controller.periodic_task_control_manager import controller_tasks
from kvorum.node.controller.quorum_controller import (
    APPENDED_PER_PIECE,
    RECORDS_PER_BATCH_MAX,
    QuorumController,
)
from kvorum.node.coroutines import Task
from kvorum.node.errors import NotControllerError
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.raft import RaftNode
from kvorum.node.runtime import Runtime
from kvorum.node.serving.request import IncomingRequest, RequestProgress
from kvorum.node.serving.session import Session
from kvorum.node.tasks import run
from kvorum.security.security_protocol import SecurityProtocol
from kvorum.simulation.events import Events, NodeClock
from kvorum.simulation.runtime import SimulatedRuntime
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.producer_ids_record import ProducerIdsRecord
from kvorum.wire.messages.request_header import RequestHeader
from kvorum.wire.primitives import Message


def controller_over(
    raft: RaftNode, *, runtime: Runtime | None = None, image: MetadataImage | None = None
) -> QuorumController:
    version = MetadataVersion.V4_3_IV0
    loader = MetadataLoader()
    loader.image = image or loader.image
    return QuorumController(
        SETTINGS,
        bootstrap_from_features(version, kafka_feature_levels(version), source="a test"),
        raft=raft,
        loader=loader,
        runtime=runtime or AsyncioRuntime(SystemClock(), thread_name="controller"),
        random=Random(1),
    )


TURNS = 20


async def leading(lab: Lab) -> tuple[Replica, QuorumController]:
    replica = await lab.leading_voter()
    controller = controller_over(replica.node)
    controller.lead(replica.node.epoch)
    return replica, controller


async def test_an_answer_waits_for_the_commit(lab: Lab) -> None:
    _, controller = await leading(lab)
    answer = asyncio.create_task(run(controller.run_task(lambda _image, _context: no_op())))
    for _ in range(TURNS):
        await asyncio.sleep(0)
    # The loader of this controller hears of no commit.
    assert not answer.done()
    controller.renounce()
    with pytest.raises(NotControllerError):
        await answer


def _fail(image: MetadataImage, context: ControllerRequestContext) -> ControllerResult[None]:
    raise ValueError("a bug")


async def test_a_controller_that_fails_gives_up_its_leadership(lab: Lab) -> None:
    replica, controller = await leading(lab)
    led = replica.node.epoch
    with pytest.raises(RequestError) as raised:
        await run(controller.run_task(_fail))
    assert raised.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert not controller.is_active
    await replica.listener.until(lambda: led in replica.listener.epochs_lost)


def _too_much(image: MetadataImage, context: ControllerRequestContext) -> ControllerResult[None]:
    record = ConfigRecord(resource_type=4, resource_name="1", name="a", value="v" * 30_000)
    return ControllerResult(None, ((record, 0),) * 300)


async def test_an_operation_that_is_too_large_is_refused_and_nothing_else(lab: Lab) -> None:
    replica, controller = await leading(lab)
    led = replica.node.epoch
    with pytest.raises(RequestError) as raised:
        await run(controller.run_task(_too_much))
    assert raised.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
    assert controller.is_active
    assert replica.node.epoch == led


def ids(first: int, count: int) -> tuple[RecordAndVersion, ...]:
    return tuple(
        (ProducerIdsRecord(1, 1, next_producer_id=number), 0)
        for number in range(first, first + count)
    )


class Slow:
    """A task of three pieces that notes what it finds in each."""

    def __init__(self) -> None:
        self.pieces = 0

    def __call__(
        self, image: MetadataImage, context: ControllerRequestContext
    ) -> Pieces[ControllerResult[int]]:
        del context
        for _ in range(3):
            self.pieces += 1
            yield
        return ControllerResult(image.next_producer_id, ids(100, 1))


def quick(image: MetadataImage, context: ControllerRequestContext) -> ControllerResult[int]:
    del context
    return ControllerResult(image.next_producer_id, ids(200, 1))


def written(values: list[bytes]) -> list[int]:
    records = [decode_record(value)[0] for value in values]
    return [record.next_producer_id for record in records if isinstance(record, ProducerIdsRecord)]


async def renounce(controller: QuorumController, *waiting: asyncio.Task[Any]) -> None:
    """End a leadership, and with it all that waits for a commit."""
    controller.renounce()
    for task in waiting:
        with pytest.raises(NotControllerError):
            await task


async def test_others_have_their_turn_but_no_write_comes_in_between(lab: Lab) -> None:
    replica, controller = await leading(lab)
    slow = Slow()
    tasks = [asyncio.create_task(run(controller.run_task(task))) for task in (slow, quick)]
    seen: list[int] = []
    while slow.pieces < 3:
        await asyncio.sleep(0)
        seen.append(slow.pieces)
        assert written(replica.listener.values) == []
    assert seen == [1, 2, 3]
    await replica.listener.until(lambda: len(written(replica.listener.values)) == 2)
    assert written(replica.listener.values) == [100, 200]
    await renounce(controller, *tasks)


async def test_a_lost_leadership_ends_what_is_half_done_and_what_waits_for_its_turn(
    lab: Lab,
) -> None:
    replica, controller = await leading(lab)
    slow = Slow()
    tasks = [asyncio.create_task(run(controller.run_task(task))) for task in (slow, quick)]
    for _ in range(2):
        await asyncio.sleep(0)
    assert slow.pieces == 2
    end_offset = replica.node.log_end_offset
    await renounce(controller, *tasks)
    assert slow.pieces == 2
    assert replica.node.log_end_offset == end_offset
    controller.lead(replica.node.epoch)
    await asyncio.sleep(0)
    after = asyncio.create_task(run(controller.run_task(quick)))
    await replica.listener.until(lambda: written(replica.listener.values) == [200])
    await renounce(controller, after)


async def test_many_records_are_appended_in_kafkas_batches_and_piece_by_piece(lab: Lab) -> None:
    replica, controller = await leading(lab)
    count = RECORDS_PER_BATCH_MAX + 1

    def many(image: MetadataImage, context: ControllerRequestContext) -> ControllerResult[None]:
        del image, context
        return ControllerResult(None, ids(0, count), is_atomic=False)

    before = replica.node.log_end_offset
    task = asyncio.create_task(run(controller.run_task(many)))
    ends: list[int] = []
    while replica.node.log_end_offset < before + count:
        await asyncio.sleep(0)
        ends.append(replica.node.log_end_offset - before)
    assert ends.count(0) == RECORDS_PER_BATCH_MAX // APPENDED_PER_PIECE - 1
    assert sorted(set(ends)) == [0, RECORDS_PER_BATCH_MAX, count]
    assert controller.applied_offset == before + count - 1
    await renounce(controller, task)
    await replica.listener.until(lambda: replica.listener.next_offset >= before + count)
    assert written(replica.listener.values) == list(range(count))


async def test_an_append_between_pieces_does_not_put_records_at_wrong_offsets(lab: Lab) -> None:
    replica, controller = await leading(lab)
    count = 2 * APPENDED_PER_PIECE

    def many(image: MetadataImage, context: ControllerRequestContext) -> ControllerResult[None]:
        del image, context
        return ControllerResult(None, ids(0, count))

    before = replica.node.log_end_offset
    task = asyncio.create_task(run(controller.run_task(many)))
    await asyncio.sleep(0)
    assert replica.node.log_end_offset == before
    replica.node.propose([b"of the quorum"], epoch=replica.node.epoch)
    for _ in range(TURNS):
        await asyncio.sleep(0)
    assert replica.node.log_end_offset == before + 1 + count
    assert controller.applied_offset == before + count
    assert controller.is_active
    await renounce(controller, task)


def shutdown_heartbeat(image: MetadataImage, broker_id: int) -> IncomingRequest[Message]:
    """A heartbeat of a broker that wants to shut down."""
    broker = image.cluster.brokers[broker_id]
    return IncomingRequest(
        header=RequestHeader(ApiKey.BROKER_HEARTBEAT, BrokerHeartbeatRequest.MAX_VERSION),
        body=BrokerHeartbeatRequest(
            broker_id, broker.epoch, current_metadata_offset=image.last_offset, want_shut_down=True
        ),
        frame=b"",
        progress=RequestProgress(SystemClock()),
        session=Session("CONTROLLER", SecurityProtocol.PLAINTEXT, "10.0.0.1", ANONYMOUS),
        access=UNRESTRICTED,
    )


async def test_what_a_heartbeat_has_begun_is_written_though_its_broker_has_hung_up(
    lab: Lab,
) -> None:
    """Only the first heartbeat that asks for a shutdown moves the leaderships away."""
    count = 2 * APPENDED_PER_PIECE
    cluster = started_cluster(brokers=2)
    cluster.create_topic("orders", assignments=[(1, 2)] * count)
    replica = await lab.leading_voter()
    controller = controller_over(replica.node, image=cluster.image)
    controller.lead(replica.node.epoch)
    before = replica.node.log_end_offset
    request = shutdown_heartbeat(cluster.image, 1)
    answers: list[Message | Exception] = []
    asked = Task(controller.write(request, controller_api(request.body)), answers.append)
    asked.close()
    assert replica.node.log_end_offset == before
    for _ in range(TURNS):
        await asyncio.sleep(0)
    assert replica.node.log_end_offset == before + 1 + count
    assert answers == []


async def test_no_session_ends_while_the_process_has_no_turn(lab: Lab) -> None:
    """Its brokers' heartbeats wait as long as its own look at the sessions."""
    replica = await lab.leading_voter()
    events, held_up = Events(), list[Callable[[], None]]()
    runtime = SimulatedRuntime(events, NodeClock(events), Random(1), turn=held_up.append)
    controller = controller_over(
        replica.node, runtime=runtime, image=started_cluster(brokers=1).image
    )
    config = NodeConfig.from_properties(
        {
            "process.roles": "controller",
            "node.id": "1",
            "listeners": "CONTROLLER://:9093",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": "localhost:9093",
            "log.dirs": "/data",
            "broker.session.timeout.ms": "9000",
        }
    )
    controller.lead(replica.node.epoch)
    contacts_ms = controller.last_contacts_ms()
    controller_tasks(controller, config, runtime).start()
    for pass_ms in (20_000, 2_000):
        events.run_until(events.now_ms + pass_ms)
        while held_up:
            held_up.pop(0)()
    assert contacts_ms
    assert controller.last_contacts_ms() == contacts_ms


async def test_a_write_to_a_stopped_replica_finds_no_controller(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    replica, controller = await leading(lab)
    await replica.stop()
    with caplog.at_level(logging.ERROR), pytest.raises(NotControllerError):
        await run(controller.run_task(lambda _image, _context: no_op()))
    assert not controller.is_active
    assert caplog.records == []


async def test_a_controller_over_a_stopped_replica_is_not_active(lab: Lab) -> None:
    replica = await lab.leading_voter()
    controller = controller_over(replica.node)
    await replica.stop()
    controller.lead(1)
    assert not controller.is_active


async def test_target_voters_are_not_judged_by_a_replica_that_leads_no_longer(lab: Lab) -> None:
    """The replica knows that before its controller does; it would refuse every target."""
    replica, controller = await leading(lab)
    replica.node.resign(replica.node.epoch)
    with pytest.raises(NotControllerError):
        await run(
            controller.run_task(
                lambda image, context: ControllerResult(
                    None, tuple(alter_target_voters(image, 0, [1], context))
                )
            )
        )
