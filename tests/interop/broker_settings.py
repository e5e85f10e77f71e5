"""Settings of a broker beside a quorum of controllers."""

from __future__ import annotations

from tests.interop.controller_quorum import ControllerQuorum
from tests.support.ports import free_ports


def write_settings_with_a_broker(quorum: ControllerQuorum) -> str:
    """Make the first node a broker as well, and return where it listens as one."""
    (port,) = free_ports(1)
    broker, controller = f"127.0.0.1:{port}", quorum.controllers[1].address
    listeners = f"PLAINTEXT://{broker},CONTROLLER://{controller}"
    quorum.write_dynamic_settings()
    quorum.write_settings(
        {
            "controller.quorum.bootstrap.servers": quorum.addresses,
            "process.roles": "broker,controller",
            "listeners": listeners,
            "advertised.listeners": listeners,
        },
        1,
    )
    return broker
