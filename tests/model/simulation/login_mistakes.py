"""Mistakes in what lets clients in, ends their sessions and asks what they may."""

from typing import Final

import pytest
from tests.model.mutation.in_process import put_in
from tests.model.mutation.mutant import Edit
from tests.model.simulation.mistake import Mistake, edited

from kvorum.metadata.acl_codes import AclOperation
from kvorum.node.handlers.produce import _Appended, _Appender, _Produced, _Topic
from kvorum.simulation.partitions import promises
from kvorum.wire.error_codes import ErrorCode

# pyright: reportPrivateUsage=false
# (a mistake is made inside of a class)


def _refuse_after_the_append(patch: pytest.MonkeyPatch) -> None:
    append = _Appender.append

    async def append_and_refuse(self: _Appender, topic: _Topic) -> list[_Appended]:
        produced = [one for one in topic.partitions if isinstance(one, _Produced)]
        appended = await append(self, topic)
        access = self._request.access
        if not all(access.allows_on_topic(AclOperation.WRITE, one.topic.name) for one in produced):
            for response in topic.response.partition_responses:
                response.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return appended

    patch.setattr(_Appender, "append", append_and_refuse)
    unasked = Edit(
        within="_topic",
        room="node.handlers.produce",
        old="broker.hosting.topic(choice, AclOperation.WRITE, request.access)",
        new="broker.hosting.topic_for_broker(choice)",
    )
    put_in(patch, [unasked])


LOGIN_MISTAKES: Final = (
    Mistake(
        "a session has no end",
        promises.SESSIONS_END,
        4,
        edited(
            Edit(
                within="SaslAuthentication._begin_session",
                old="None if done.lifetime_ms is None else now_ms + done.lifetime_ms",
                new="None",
            )
        ),
    ),
    Mistake(
        "a session is twice as long as its client was told",
        promises.SESSIONS_END,
        7,
        edited(
            Edit(
                within="SaslAuthentication._begin_session",
                old="now_ms + done.lifetime_ms",
                new="now_ms + 2 * done.lifetime_ms",
            )
        ),
    ),
    Mistake(
        "a session after a further login has no end",
        promises.SESSIONS_END,
        None,
        edited(
            Edit(
                within="SaslAuthentication._is_over",
                old="end_ms is not None",
                new="end_ms is not None and not self._authenticator.is_repeated",
            )
        ),
    ),
    Mistake(
        "a proof of any password lets in",
        promises.LOGINS_BY_PASSWORD,
        4,
        edited(
            Edit(
                within="ScramServer._end",
                old="compare_digest(stored_key, credential.stored_key)",
                new="stored_key",
            )
        ),
    ),
    Mistake(
        "a password that was removed lets in",
        promises.LOGINS_BY_PASSWORD,
        4,
        edited(
            Edit(
                within="replay_remove_user_scram_credential",
                old="key in image.credentials",
                new="False",
            )
        ),
    ),
    Mistake(
        "the first password of a user lets in for good",
        promises.LOGINS_BY_PASSWORD,
        4,
        edited(
            Edit(
                within="replay_user_scram_credential",
                old="image.credentials.set((record.mechanism, record.name), credential)",
                new=(
                    "image.credentials if (record.mechanism, record.name) in image.credentials "
                    "else image.credentials.set((record.mechanism, record.name), credential)"
                ),
            )
        ),
    ),
    Mistake(
        "a further login may be another user's",
        promises.LOGINS_BY_PASSWORD,
        7,
        edited(
            Edit(
                within="SaslServerAuthenticator._refuse_other_user",
                old="self._before.user.name != user.name",
                new="False",
            )
        ),
    ),
    Mistake(
        "permissions are those of the first request",
        promises.PERMITTED,
        7,
        edited(
            Edit(
                within="Authorizer.access",
                old="self._loader.published.acls",
                new="self.__dict__.setdefault('first', self._loader.published.acls)",
            )
        ),
    ),
    Mistake(
        "every client may write",
        promises.PERMITTED,
        4,
        edited(
            Edit(
                within="Hosting.topic",
                old="not access.allows_on_topic(operation, name, references=choice.references)",
                new=(
                    "operation is not AclOperation.WRITE "
                    "and not access.allows_on_topic(operation, name, references=choice.references)"
                ),
            )
        ),
    ),
    Mistake(
        "every client may read",
        promises.PERMITTED,
        4,
        edited(
            Edit(
                within="Hosting.topic",
                old="not access.allows_on_topic(operation, name, references=choice.references)",
                new=(
                    "operation is not AclOperation.READ "
                    "and not access.allows_on_topic(operation, name, references=choice.references)"
                ),
            )
        ),
    ),
    Mistake(
        "a write is refused once it is in the log",
        promises.PERMITTED,
        4,
        _refuse_after_the_append,
    ),
)
