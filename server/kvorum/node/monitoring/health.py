"""The liveness and readiness of a node, for probes.

A process is alive if its event loop runs and its log can be written. A controller is ready if it
knows a leader and has applied everything that is known to be committed. A broker is ready if it is
unfenced in the metadata that it knows: brokers continue to serve clients while there is no
controller, so that a probe must not take them out of service then. The reasons against readiness
are sentences for the reader of the probe's response.
"""

from collections.abc import Iterator

from kvorum.broker.lifecycle import BrokerState
from kvorum.node.broker_server import BrokerServer
from kvorum.node.events.log_event import Field
from kvorum.node.shared_server import SharedServer
from kvorum.node.started_roles import StartedRoles

RECORDS_BEHIND_MAX = 1_000
"""The number of records that an up-to-date replica may be behind at a busy moment."""


def reasons_not_alive(shared: SharedServer) -> list[str]:
    """Return the reasons why the node is not alive; that it answers shows that its loop runs."""
    failure = shared.raft.failure
    return [] if failure is None else [f"the metadata log has failed: {failure}"]


def reasons_not_ready(roles: StartedRoles) -> list[str]:
    """Return the reasons why the node is not ready."""
    shared = roles.shared
    reasons = reasons_not_alive(shared)
    if shared.raft.is_stopped:
        reasons.append("the replica of the metadata log does not run")
    elif shared.config.is_controller:
        reasons.extend(_of_log(shared))
    if shared.config.is_controller and roles.controller is None:
        reasons.append("the controller is not started")
    if shared.config.is_broker:
        reasons.extend(_of_broker(roles.broker))
    return reasons


def facts(node_id: int, roles: StartedRoles | None) -> dict[str, Field]:
    """Return details for a probe's response; `roles` is None before the log is open."""
    if roles is None:
        return {"node_id": node_id}
    raft, broker = roles.shared.raft, roles.broker
    return {
        "node_id": node_id,
        "state": raft.metrics.state,
        "leader_id": raft.leader_id,
        "epoch": raft.epoch,
        "high_watermark": raft.high_watermark,
        "metadata_offset": roles.shared.loader.published_offset,
        "broker_state": None if broker is None else broker.lifecycle_manager.state.name,
    }


def _of_log(shared: SharedServer) -> Iterator[str]:
    raft = shared.raft
    if not raft.has_leader:
        yield "no leader of the quorum is known"
        return
    high_watermark = raft.leader_high_watermark
    if high_watermark is None:
        yield "the high watermark of the metadata log is not known yet"
        return
    behind = high_watermark - (shared.loader.last_offset + 1)
    if behind > RECORDS_BEHIND_MAX:
        yield f"{behind} records of metadata are committed and not applied yet"


def _of_broker(broker: BrokerServer | None) -> Iterator[str]:
    if broker is None:
        yield "the broker is not started"
        return
    lifecycle = broker.lifecycle_manager
    if lifecycle.state is not BrokerState.RUNNING:
        yield f"the broker is {lifecycle.state.name}"
    elif not lifecycle.is_unfenced:
        yield "the broker is fenced"
