"""Whether a node lives, and whether it is ready to do its work: what probes ask for.

Alive is a process whose loop runs and whose log can be written. Ready is a controller that knows a
leader and has all that is known to be committed, and a broker that is unfenced as far as it knows:
brokers serve their clients on while there is no controller, and should not be taken away from them
then. The reasons against it are sentences for whoever looks at the probe.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kvorum.broker.lifecycle import BrokerState
from kvorum.node.broker.part import BrokerPart
from kvorum.node.controller.part import ControllerPart
from kvorum.node.core import NodeCore
from kvorum.node.events.event import Field

RECORDS_BEHIND_MAX = 1_000
"""What a replica that keeps up may be behind at a busy moment."""


@dataclass(frozen=True, slots=True)
class Health:
    """What speaks against it, nothing if all is well."""

    reasons: tuple[str, ...]

    @property
    def is_good(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.reasons


def liveness(core: NodeCore) -> Health:
    """Return what speaks against the node being alive; that it answers speaks for it."""
    failure = core.raft.failure
    return Health(() if failure is None else (f"the metadata log has failed: {failure}",))


def readiness(
    core: NodeCore, controller: ControllerPart | None, broker: BrokerPart | None
) -> Health:
    """Return what speaks against the node doing its work; a role is None until it is started."""
    reasons = [*liveness(core).reasons]
    if core.raft.is_stopped:
        reasons.append("the replica of the metadata log does not run")
    elif core.config.is_controller:
        reasons.extend(_of_log(core))
    if core.config.is_controller and controller is None:
        reasons.append("the controller is not started")
    if core.config.is_broker:
        reasons.extend(_of_broker(broker))
    return Health(tuple(reasons))


def facts(core: NodeCore, broker: BrokerPart | None) -> dict[str, Field]:
    """Return where the node stands, for whoever reads a probe's answer."""
    raft, metrics = core.raft, core.raft.metrics
    return {
        "node_id": core.config.node_id,
        "state": None if metrics is None else metrics.state,
        "leader_id": raft.leader_id,
        "epoch": raft.epoch,
        "high_watermark": raft.high_watermark,
        "metadata_offset": core.loader.published_offset,
        "broker_state": None if broker is None else broker.state.name,
    }


def _of_log(core: NodeCore) -> Iterator[str]:
    raft = core.raft
    if not raft.has_leader:
        yield "no leader of the quorum is heard of"
        return
    high_watermark = raft.leader_high_watermark
    if high_watermark is None:
        yield "how much of the metadata log is committed is not known yet"
        return
    behind = high_watermark - (core.loader.last_offset + 1)
    if behind > RECORDS_BEHIND_MAX:
        yield f"{behind} records of metadata are committed and not taken in yet"


def _of_broker(broker: BrokerPart | None) -> Iterator[str]:
    if broker is None:
        yield "the broker is not started"
    elif broker.state is not BrokerState.RUNNING:
        yield f"the broker is {broker.state.name}"
    elif not broker.is_unfenced:
        yield "the broker is fenced"
