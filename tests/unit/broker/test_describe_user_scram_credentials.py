"""DescribeUserScramCredentials: the text beside each user, as a real broker sends it."""

from random import Random

from kvorum.broker.view_api import BrokerView
from kvorum.broker.views.describe_user_scram_credentials import describe_user_scram_credentials
from kvorum.metadata.image import MetadataImage
from kvorum.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from kvorum.wire.messages.user_scram_credential_record import UserScramCredentialRecord

VIEW = BrokerView(node_id=1, cluster_id="c", listener="L", random=Random(1))


def test_a_user_without_an_error_has_an_empty_text_and_not_null() -> None:
    record = UserScramCredentialRecord(name="known", mechanism=1, iterations=4096)
    image = MetadataImage().apply(record, 0, 0)
    users = [DescribeUserScramCredentialsRequest.UserName(name) for name in ("known", "unknown")]
    request = DescribeUserScramCredentialsRequest(users=users)
    response = describe_user_scram_credentials(image, request, VIEW)
    assert [(one.user, one.error_code, one.error_message) for one in response.results] == [
        ("known", 0, ""),
        ("unknown", 91, "Attempt to describe a user credential that does not exist: unknown"),
    ]
