"""When the active controller answers, and what it does about an operation that fails."""

import asyncio

import pytest
from tests.node.raft.cluster import Lab
from tests.node.raft.played_controllers import TURNS, leading

from kvorum.controller.api import ControllerResult
from kvorum.controller.periodic_tasks import no_op
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.request_error import RequestError
from kvorum.node.errors import NotControllerError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.config_record import ConfigRecord


async def test_an_answer_waits_for_the_commit(lab: Lab) -> None:
    _, controller = await leading(lab)
    answer = asyncio.create_task(controller.run_task(lambda _image, _context: no_op()))
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
        await controller.run_task(_fail)
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
        await controller.run_task(_too_much)
    assert raised.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
    assert controller.is_active
    assert replica.node.epoch == led
