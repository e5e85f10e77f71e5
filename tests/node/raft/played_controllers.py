"""A controller over a played replica, and one that leads."""

from random import Random

from tests.node.raft.cluster import Lab, Replica
from tests.support.controller_under_test import SETTINGS

from kvorum.metadata.bootstrap import bootstrap_from_features
from kvorum.metadata.features import default_feature_levels
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.node.clock import SystemClock
from kvorum.node.controller.quorum_controller import QuorumController
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.raft import RaftNode


def controller_over(raft: RaftNode) -> QuorumController:
    version = MetadataVersion.V4_3_IV0
    return QuorumController(
        SETTINGS,
        bootstrap_from_features(version, default_feature_levels(version), source="a test"),
        raft=raft,
        loader=MetadataLoader(),
        clock=SystemClock(),
        random=Random(1),
    )


TURNS = 20


async def leading(lab: Lab) -> tuple[Replica, QuorumController]:
    replica = await lab.leading_voter()
    controller = controller_over(replica.node)
    controller.lead(replica.node.epoch)
    return replica, controller
