"""Certificates that are renewed while a node runs: a real one, and ours."""

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from tests.support.certificates import NODE_NAME, THIS_MACHINE, Authority, Certified
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import LEVELS_OF_OURS, STANDALONE, Node
from tests.support.raw_client import RawClient
from tests.support.tls_nodes import Keys, Listeners, TlsClient, served_serial
from tests.support.waiting import wait_for

from kvorum.metadata.configs_image import ResourceType
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

pytestmark = pytest.mark.slow

SIDES: Final = ("real", "ours")
TLS: Final = "TLS"
NODE_ID: Final = "1"
ALTER_VERSION: Final = 1
SET: Final = 0
UNRELATED: Final = "foo.bar"
LOCATION: Final = "listener.name.tls.ssl.keystore.location"
SOFTWARE: Final = ApiVersionsRequest("test", "1")
UNREADABLE: Final = "Failed to load PEM SSL keystore "
FAULT: Final = "Error updating node with new configuration"


class Renewing(NamedTuple):
    """A node with a listener of TLS, and the keys that it reads."""

    node: Node
    keys: Keys
    port: int

    def served(self) -> int:
        """Return the serial number of the certificate that a new connection gets."""
        context = ssl.create_default_context(cafile=str(self.keys.trusted))
        context.check_hostname = False
        return served_serial(self.port, context)

    def alter(self, key: str, value: str) -> int:
        """Set a dynamic value of this node alone."""
        return self.answer_to(key, value)[0]

    def answer_to(self, key: str, value: str) -> tuple[int, str | None]:
        """Return the code and the text that answer a change of a value of this node alone."""
        change = IncrementalAlterConfigsRequest.AlterableConfig(key, SET, value)
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            ResourceType.BROKER, NODE_ID, [change]
        )
        with RawClient(self.node.broker) as client:
            request = IncrementalAlterConfigsRequest([resource])
            response = client.ask(request, IncrementalAlterConfigsResponse, ALTER_VERSION)
        answer = response.responses[0]
        return answer.error_code, answer.error_message

    def wait_until_served(self, certified: Certified) -> None:
        wait_for(
            lambda: self.served() == certified.certificate.serial_number,
            "new connections get the other certificate",
        )

    def wait_for_faults(self, count: int) -> None:
        process = self.node.process
        process.wait_until(
            lambda: sum(FAULT in line for line in process.lines()) >= count,
            f"{count} faults are logged",
        )

    def replace(self, certified: Certified) -> None:
        """Put another certificate in the place of the node's."""
        self.keys.write(certified, self.keys.node.stem)


@pytest.fixture(params=SIDES)
def renewing(
    request: pytest.FixtureRequest, java: Java, kafka_tools: ToolRunner, tmp_path: Path
) -> Iterator[Renewing]:
    keys = Keys(tmp_path)
    listeners = Listeners((TLS,))
    settings = {**keys.settings(), **listeners.settings()}
    is_real = request.param == "real"
    node = Node(
        tmp_path / "node", settings, java=java if is_real else None, ports=listeners.own_ports
    )
    levels = LEVELS_OF_OURS if is_real else ()
    with node.format((*STANDALONE, *levels), tools=kafka_tools) as running:
        yield Renewing(running, keys, listeners.ports[TLS])


def certify(authority: Authority, name: str = NODE_NAME, *more_hosts: str) -> Certified:
    return authority.certify(name, hosts=(*THIS_MACHINE, *more_hosts))


def test_a_file_is_read_again_when_the_nodes_own_values_are_altered(renewing: Renewing) -> None:
    first = renewing.served()
    context = renewing.keys.context()
    with TlsClient(renewing.port, context) as established:
        following = certify(renewing.keys.authority, NODE_NAME, "more.example")
        renewing.replace(following)
        assert renewing.served() == first
        assert renewing.alter(UNRELATED, "1") == ErrorCode.NONE
        renewing.wait_until_served(following)
        assert established.ask(SOFTWARE, ApiVersionsResponse, 3).error_code == ErrorCode.NONE


def test_a_certificate_of_another_subject_or_for_fewer_hosts_is_not_used(
    renewing: Renewing,
) -> None:
    first = renewing.served()
    authority = renewing.keys.authority
    others = (certify(authority, "other"), authority.certify(NODE_NAME, hosts=(NODE_NAME,)))
    for number, other in enumerate(others):
        renewing.replace(other)
        assert renewing.alter(UNRELATED, str(number)) == ErrorCode.NONE
        renewing.wait_for_faults(number + 1)
        assert renewing.served() == first
    following = certify(authority)
    renewing.replace(following)
    assert renewing.alter(UNRELATED, "fine again") == ErrorCode.NONE
    renewing.wait_until_served(following)


def test_another_file_is_used_at_once(renewing: Renewing) -> None:
    following = certify(renewing.keys.authority)
    path = renewing.keys.write(following, "another")
    assert renewing.alter(LOCATION, str(path)) == ErrorCode.NONE
    renewing.wait_until_served(following)


def test_a_key_of_a_store_that_cannot_be_used_is_refused(renewing: Renewing) -> None:
    keys = renewing.keys
    before = renewing.served()
    rubbish = keys.folder / "rubbish.pem"
    rubbish.write_text("no key")
    subject = renewing.keys.write(certify(keys.authority, "other"), "subject")
    hosts = keys.write(keys.authority.certify(NODE_NAME, hosts=(NODE_NAME,)), "hosts")
    gone = keys.folder / "gone.pem"
    frame = "Invalid value org.apache.kafka.common.config.ConfigException: Validation of dynamic "
    config = "org.apache.kafka.common.config.ConfigException: Keystore "
    refused = {
        gone: f"org.apache.kafka.common.errors.InvalidConfigurationException: {UNREADABLE}{gone}",
        rubbish: "org.apache.kafka.common.errors.InvalidConfigurationException: ",
        subject: f"{config}DistinguishedName does not match:  existing={{alias=kafka, DN=",
        hosts: f"{config}SubjectAltNames do not match:  existing=",
    }
    for path, text in refused.items():
        code, told = renewing.answer_to(LOCATION, str(path))
        assert (path, code) == (path, ErrorCode.INVALID_REQUEST)
        assert told is not None
        assert told.startswith(f"{frame}config update of SSLFactory failed: {text}")
        assert told.endswith(" for configuration Invalid dynamic configuration")
    another = keys.write(certify(keys.authority), "another")
    assert renewing.alter(LOCATION, str(another)) == ErrorCode.NONE
    wait_for(lambda: renewing.served() != before, "new connections get the other certificate")
