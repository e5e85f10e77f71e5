"""AlterReplicaLogDirs, whose disk operations are completed though its client is gone."""

from random import Random
from types import SimpleNamespace
from typing import cast

from tests.unit.node.permitted_clients import incoming

from kvorum.metadata.standard_authorizer import UNRESTRICTED
from kvorum.node.coroutines import Promise, Task
from kvorum.node.handlers import alter_replica_log_dirs
from kvorum.node.services import BrokerServices
from kvorum.simulation.events import Events, NodeClock
from kvorum.simulation.runtime import SimulatedRuntime
from kvorum.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest


def test_a_move_begins_though_the_client_is_gone_before_the_disk_is_ready() -> None:
    events = Events()
    runtime = SimulatedRuntime(
        events, NodeClock(events), Random(1), turn=lambda callback: callback()
    )
    made: Promise[None] = Promise(runtime)
    begun: list[object] = []

    async def alter(directories: object) -> dict[object, object]:
        await made.result()
        begun.append(directories)
        return {}

    broker = SimpleNamespace(
        replicas=SimpleNamespace(alter_replica_log_dirs=alter), runtime=runtime
    )
    request = incoming(AlterReplicaLogDirsRequest([]), 2, UNRESTRICTED)
    answer = alter_replica_log_dirs.API.answer(request, cast("BrokerServices", broker))
    Task(answer, lambda _: None).close()
    made.settle(None)
    events.run_until(1)
    assert begun == [{}]
