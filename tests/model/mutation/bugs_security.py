"""Holes in Kafka's security: logins, the settings of tokens, memory before a login."""

from tests.model.mutation.mutant import Edit, Kind, Mutant, liveness_bug, safety_bug

MUTANTS = (
    Mutant(
        id="CVE-2017-12610 PLAIN",
        cause="the authorization id of a client was its user, whoever had logged in",
        breaks="logins",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                within="PlainServer.evaluate",
                old='authorization_id not in {"", user}',
                new="False",
            ),
            Edit(
                within="PlainServer.evaluate",
                old="AuthenticatedUser(user)",
                new="AuthenticatedUser(authorization_id or user)",
            ),
        ),
    ),
    Mutant(
        id="CVE-2017-12610 SCRAM",
        cause="the authorization id of a client was its user, whoever had logged in",
        breaks="logins",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                within="ScramServer._begin",
                old='first.authorization_id not in {"", first.user}',
                new="False",
            ),
            Edit(
                within="ScramServer._end",
                old="self.user = begun.login.user",
                new="""
                    self.user = begun.login.user._replace(
                        name=begun.first.authorization_id or begun.first.user
                    )
                """,
            ),
        ),
    ),
    safety_bug(
        id="CVE-2021-38153 PLAIN",
        cause="the time of a comparison told how much of a password was right",
        breaks="secrets",
        within="PlainServer._is_right",
        old="compare_digest(given, given if expected is None else expected.encode())",
        new="given == (given if expected is None else expected.encode())",
    ),
    safety_bug(
        id="CVE-2021-38153 SCRAM",
        cause="the time of a comparison told how much of a key was right",
        breaks="secrets",
        within="ScramServer._end",
        old="not compare_digest(stored_key, credential.stored_key)",
        new="stored_key != credential.stored_key",
    ),
    liveness_bug(
        id="CVE-2022-34917",
        cause="clients that had not logged in had a server take memory for any frame",
        breaks="memory before a login",
        within="ServerConnection._begin_next",
        old="self._rules.frame_bytes_max if sasl is None else sasl.frame_bytes_max",
        new="self._rules.frame_bytes_max",
    ),
    safety_bug(
        id="CVE-2023-25194",
        cause="a login module could be any class",
        breaks="settings of logins",
        within="read_login_module",
        old="module.class_name not in _MODULES",
        new="False",
    ),
    safety_bug(
        id="CVE-2024-56128",
        cause="the nonce of a client's final message was not compared",
        breaks="logins",
        within="ScramServer._end",
        old="final.nonce != begun.answer.nonce",
        new="False",
    ),
    safety_bug(
        id="CVE-2025-27817",
        cause="a key set was read from any URL, and from any file",
        breaks="settings of logins",
        within="checked_url",
        old="url not in allowed",
        new="False",
    ),
    safety_bug(
        id="kafka-4.4#audience",
        cause="without an expected audience tokens for any audience were taken",
        breaks="settings of logins",
        within="OAuthSettings._check_claims",
        old="not self.expected_audience and not self.takes_any_audience",
        new="False",
    ),
    safety_bug(
        id="kafka-4.4#issuer",
        cause="without an expected issuer tokens of any issuer were taken",
        breaks="settings of logins",
        within="OAuthSettings._check_claims",
        old="not self.expected_issuer and not self.takes_any_issuer",
        new="False",
    ),
    safety_bug(
        id="KAFKA-7730",
        cause="clients could take all connections, so that brokers could not reach each other",
        breaks="brokers reach each other",
        within="Limits.total_max_for",
        old="self.total_max + self.protected_count if is_protected else self.total_max",
        new="self.total_max",
    ),
    safety_bug(
        id="quota of a stranger",
        cause="a client that had not logged in used the quota of the client id that it named",
        breaks="a quota is used by its own client",
        within="RequestHandler._throttled",
        old="request.session.is_authenticated",
        new="True",
    ),
    liveness_bug(
        id="connections wait without bound",
        cause="any number of connections waited for their turn under the creation rate",
        breaks="a client is served in time",
        within="ConnectionRates.admit",
        old="len(turns_ms) >= self._limits.waiting_max",
        new="False",
    ),
)
