"""Connections that end with the request that is given up."""

from random import Random
from types import SimpleNamespace
from typing import cast

import pytest

from kvorum.simulation.network import OnReply
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.closing_connection import ClosingConnection
from kvorum.simulation.partitions.open_connection import OpenConnection
from kvorum.wire.messages.heartbeat import HeartbeatResponse
from kvorum.wire.primitives import Message

BROKER = 4
INCARNATION = 3


class World:
    """One broker, the connections of the requests that it got, and those that ended."""

    def __init__(self, *, has_ends: bool = True) -> None:
        self.got: list[OpenConnection | None] = []
        self.ended: list[OpenConnection] = []
        self.answers: list[Message | None] = []
        around = SimpleNamespace(
            servers={BROKER: SimpleNamespace(incarnation=INCARNATION, receive=self._receive)},
            closing=Random(1) if has_ends else None,
            end_connection_soon=self._end_soon,
        )
        self.connection = ClosingConnection(cast("BrokerSurroundings", around), BROKER)
        self.answer = self.connection.passing_on(self.answers.append)

    def _end_soon(self, _broker: int, opened: OpenConnection) -> None:
        self.ended.append(opened)

    def _receive(
        self, _frame: bytes, _reply: OnReply, connection: OpenConnection | None = None
    ) -> None:
        self.got.append(connection)

    def arrive(self) -> None:
        self.connection.serve(b"", lambda _: None)


@pytest.fixture
def world() -> World:
    return World()


def test_a_request_that_is_given_up_ends_its_connection_and_that_of_its_double(
    world: World,
) -> None:
    world.arrive()
    world.arrive()
    world.answer(None)
    assert world.answers == [None]
    assert world.ended == world.got
    assert [one.incarnation for one in world.ended] == [INCARNATION] * 2


def test_a_request_that_comes_after_it_was_given_up_is_handled_until_its_end(world: World) -> None:
    world.answer(None)
    world.arrive()
    assert len(world.got) == 1
    assert world.ended == world.got


def test_an_answered_request_leaves_its_connection_open(world: World) -> None:
    world.arrive()
    answer = HeartbeatResponse()
    world.answer(answer)
    assert world.answers == [answer]
    assert world.ended == []


def test_in_a_world_without_ends_a_request_has_no_connection() -> None:
    world = World(has_ends=False)
    world.arrive()
    world.answer(None)
    assert world.got == [None]
    assert world.ended == []
