"""The active controller over a replica that stops under it: a failed disk is no bug of its own."""

import logging

import pytest
from tests.node.raft.cluster import Lab
from tests.node.raft.played_controllers import controller_over, leading

from kvorum.controller.api import ControllerResult
from kvorum.controller.periodic_tasks import no_op
from kvorum.controller.quorum_reassignment.quorum_targets import alter_target_voters
from kvorum.node.errors import NotControllerError


async def test_a_write_to_a_stopped_replica_finds_no_controller(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    replica, controller = await leading(lab)
    await replica.stop()
    with caplog.at_level(logging.ERROR), pytest.raises(NotControllerError):
        await controller.run_task(lambda _image, _context: no_op())
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
        await controller.run_task(
            lambda image, context: ControllerResult(
                None, tuple(alter_target_voters(image, 0, [1], context))
            )
        )
