"""The client of a request, as what is decided about delegation tokens sees it."""

import pytest

from kvorum.metadata.standard_authorizer import ANONYMOUS, Principal
from kvorum.node.handlers.requesters import may_ask_about_tokens
from kvorum.node.serving.session import Session
from kvorum.security.security_protocol import SecurityProtocol

ALICE = Principal("User", "alice")
BY_TOKEN = Principal("User", "alice", is_token_authenticated=True)
PLAINTEXT = SecurityProtocol.PLAINTEXT
SSL = SecurityProtocol.SSL
SASL_PLAINTEXT = SecurityProtocol.SASL_PLAINTEXT
SASL_SSL = SecurityProtocol.SASL_SSL


@pytest.mark.parametrize(
    ("protocol", "principal", "may"),
    [
        (PLAINTEXT, ANONYMOUS, False),
        (SSL, ANONYMOUS, False),
        (SSL, ALICE, True),
        (SASL_PLAINTEXT, ALICE, True),
        (SASL_SSL, ALICE, True),
        (SASL_SSL, BY_TOKEN, False),
    ],
)
def test_only_who_authenticated_other_than_by_a_token_may_ask_about_tokens(
    protocol: SecurityProtocol, principal: Principal, may: bool
) -> None:
    assert may_ask_about_tokens(Session("A", protocol, "10.0.0.1", principal)) is may


@pytest.mark.parametrize(("principal", "may"), [(ALICE, True), (BY_TOKEN, False)])
def test_a_controller_trusts_the_broker_that_forwards(principal: Principal, may: bool) -> None:
    session = Session("CONTROLLER", PLAINTEXT, "10.0.0.1", principal, is_forwarded=True)
    assert may_ask_about_tokens(session) is may
