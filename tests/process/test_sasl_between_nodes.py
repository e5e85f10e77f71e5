"""A node that logs in by SASL at itself and at others, or is refused at its start."""

from pathlib import Path
from typing import Final

import pytest
from tests.support.node import STANDALONE, Node
from tests.support.ports import free_ports
from tests.support.sasl_clients import PLAIN_MODULE, SCRAM_MODULE
from tests.support.waiting import wait_for

pytestmark = pytest.mark.slow

PASSWORD: Final = "secret of nodes"
MECHANISM: Final = "SCRAM-SHA-256"
AT_BROKERS: Final = "listener.name.inside.plain.sasl.jaas.config"
AT_CONTROLLERS: Final = "listener.name.controller.scram-sha-256.sasl.jaas.config"
CREDENTIAL: Final = ("--add-scram", f"{MECHANISM}=[name=node,password={PASSWORD}]")


def login(module: str, password: str = PASSWORD, more: str = "") -> str:
    return f'{module} required username="node" password="{password}"{more};'


def combined(folder: Path) -> Node:
    """Return a node that logs in at itself, once formatted: by SCRAM as a controller."""
    broker, controller = free_ports(2)
    listeners = f"INSIDE://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}"
    settings = {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "inter.broker.listener.name": "INSIDE",
        "listener.security.protocol.map": "INSIDE:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "listener.name.inside.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.sasl.enabled.mechanisms": MECHANISM,
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": MECHANISM,
        AT_BROKERS: login(PLAIN_MODULE, more=f' user_node="{PASSWORD}"'),
        AT_CONTROLLERS: login(SCRAM_MODULE),
    }
    return Node(folder, settings, ports=(broker, controller))


def test_a_voter_alone_serves_the_users_of_scram_that_its_format_gave_it(tmp_path: Path) -> None:
    with combined(tmp_path).format((*STANDALONE, *CREDENTIAL)) as node:
        pass
    assert PASSWORD not in node.log_text


def test_a_wrong_password_is_logged_and_tried_again(tmp_path: Path) -> None:
    node = combined(tmp_path).format((*STANDALONE, *CREDENTIAL))
    node.configure({AT_CONTROLLERS: login(SCRAM_MODULE, "secret of others")})
    node.launch()
    refusal = (
        "failed authentication due to: Authentication failed during authentication due to invalid "
        f"credentials with SASL mechanism {MECHANISM}"
    )
    # Refusals between two lines are counted, so that a line with a number tells of later ones.
    wait_for(lambda: f"{refusal} client_id=1 others=" in node.log_text, "it is refused again")
    assert node.process.is_running
    assert "secret of" not in node.log_text
    node.kill()


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        (
            AT_CONTROLLERS,
            f"{SCRAM_MODULE} required;",
            "listener CONTROLLER of others: The login module of mechanism SCRAM-SHA-256 needs the",
        ),
        (
            AT_BROKERS,
            f'{PLAIN_MODULE} required username="node";',
            "listener INSIDE of others: The login module of mechanism PLAIN needs the options",
        ),
    ],
)
def test_a_login_that_is_not_complete_is_refused_at_the_start(
    tmp_path: Path, key: str, text: str, message: str
) -> None:
    refused = combined(tmp_path).format((*STANDALONE, *CREDENTIAL))
    refused.configure({key: text})
    refused.launch()
    wait_for(lambda: not refused.process.is_running, "the node has ended")
    assert f"The node cannot log in at {message}" in refused.log_text
    refused.kill()
