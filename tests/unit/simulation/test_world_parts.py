"""The parts of a simulated world (time, clocks, paths, plans), and failing plans made small."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from random import Random

import pytest

from kvorum.cli import main
from kvorum.cli import simulate as command
from kvorum.simulation.events import Events, NodeClock
from kvorum.simulation.fault_plan import draw_hidden_voters, draw_plan
from kvorum.simulation.faults import FaultKind
from kvorum.simulation.makeup import WorldKind
from kvorum.simulation.network import HEALTHY, Conditions, Network, OnReply
from kvorum.simulation.options import Options, QuorumKind, draw_options
from kvorum.simulation.properties.catalogue import ALL
from kvorum.simulation.report import SEEDS_FOR_SHARES, BrokersReport, QuorumReport, failure_lines
from kvorum.simulation.requests import Requests
from kvorum.simulation.run import SeedResult
from kvorum.simulation.shrinking import Shrinker
from kvorum.simulation.trace import Trace
from kvorum.simulation.world import World
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.headers import decode_request_frame, encode_response_frame
from kvorum.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kvorum.wire.primitives import Message

DURATION_MS = 20_000
SIMULATE = ("simulate", "--only", "quorum", "--seed", "7", "--duration", "60")


def _options_of(seed: int, duration_ms: int) -> Options:
    return draw_options(Random(f"{seed}/options"), duration_ms=duration_ms)


def test_events_come_in_order_of_time_and_of_planning() -> None:
    events, heard = Events(), list[str]()
    events.after(2, lambda: heard.append("late"))
    events.after(1, lambda: heard.append("first"))
    events.after(1, lambda: heard.append("second"))
    events.after(1, lambda: heard.append("never")).cancel()
    events.run_until(1.5)
    assert heard == ["first", "second"]
    assert events.now_ms == 1.5
    events.run_until(10)
    assert heard == ["first", "second", "late"]


def test_a_clock_that_drifts_knows_when_it_shows_a_time() -> None:
    events = Events()
    clock = NodeClock(events)
    events.run_until(1_000)
    clock.set_drift(0.1)
    events.run_until(2_000)
    assert clock.monotonic_ms() == pytest.approx(2_100)
    assert clock.world_ms(2_100) == pytest.approx(2_000)


def test_the_calendar_may_go_back_where_the_clock_does_not() -> None:
    clock = NodeClock(Events())
    before, wall_before = clock.monotonic_ms(), clock.wall_ms()
    clock.jump_wall(-30_000)
    assert clock.wall_ms() == wall_before - 30_000
    assert clock.monotonic_ms() == before


def _network(
    events: Events, usual: Conditions = HEALTHY, *, faults: Counter[FaultKind] | None = None
) -> Network:
    trace = Trace(lambda: events.now_ms, is_kept=False)
    return Network(
        events, Random(1), Counter() if faults is None else faults, trace, lambda _: usual
    )


def test_a_cut_path_loses_what_is_on_its_way_and_the_way_back_stays_open() -> None:
    events, heard = Events(), list[str]()
    network = _network(events)
    network.carry(1, 2, lambda: heard.append("on its way"))
    network.cut(1, 2)
    network.carry(1, 2, lambda: heard.append("too late"))
    network.carry(2, 1, lambda: heard.append("back"))
    events.run_until(100)
    assert heard == ["back"]
    network.heal(1, 2)
    network.carry(1, 2, lambda: heard.append("healed"))
    events.run_until(200)
    assert heard == ["back", "healed"]


def test_a_clogged_path_gives_everything_at_once() -> None:
    events, heard = Events(), list[float]()
    network = _network(events)
    network.clog(1, 2)
    for _ in range(3):
        network.carry(1, 2, lambda: heard.append(events.now_ms))
    events.run_until(500)
    assert heard == []
    network.unclog(1, 2)
    events.run_until(1_000)
    assert heard == [500.0] * 3


def test_loss_and_doubling_are_reported_each_time() -> None:
    events, faults, heard = Events(), Counter[FaultKind](), list[str]()
    network = _network(events, faults=faults)
    network.path(1, 2).conditions = Conditions(loss=1.0)
    network.path(2, 1).conditions = Conditions(duplication=1.0)
    network.carry(1, 2, lambda: heard.append("lost"))
    network.carry(2, 1, lambda: heard.append("doubled"))
    events.run_until(100)
    assert heard == ["doubled", "doubled"]
    assert faults == {FaultKind.LOST_MESSAGES: 1, FaultKind.DOUBLED_MESSAGES: 1}


def test_late_messages_arrive_after_ones_that_were_sent_later() -> None:
    events, heard = Events(), list[str]()
    network = _network(events, Conditions(mean_delay_ms=0.1, late=1.0, late_ms_max=500.0))
    network.carry(1, 2, lambda: heard.append("late"))
    network.path(1, 2).conditions = Conditions(mean_delay_ms=0.1)
    network.carry(1, 2, lambda: heard.append("in time"))
    events.run_until(1_000)
    assert heard == ["in time", "late"]


def test_a_calm_network_loses_nothing_and_is_as_slow_as_usual() -> None:
    events, heard = Events(), list[int]()
    network = _network(events, Conditions(loss=1.0, duplication=1.0, mean_delay_ms=7.0, late=1.0))
    network.path(1, 2).conditions = Conditions(loss=0.5)
    network.calm()
    for number in range(3):
        network.carry(number, 2, partial(heard.append, number))
        events.run_until(1_000.0 * (number + 1))
    assert heard == [0, 1, 2]
    assert network.path(1, 2).conditions == Conditions(mean_delay_ms=7.0)


def _serve_heartbeat(frame: bytes, reply: OnReply) -> None:
    header, _ = decode_request_frame(frame)
    response = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    version, number = header.request_api_version, header.correlation_id
    reply(encode_response_frame(response, version=version, correlation_id=number))


def test_a_request_that_arrives_twice_has_one_answer() -> None:
    events, served, answers = Events(), list[bytes](), list[Message | None]()
    requests = Requests(_network(events, Conditions(duplication=1.0)), events)

    def serve(frame: bytes, reply: OnReply) -> None:
        served.append(frame)
        _serve_heartbeat(frame, reply)

    requests.ask((-1, 2), HeartbeatRequest(), serve, answers.append, timeout_ms=500, version=3)
    events.run_until(1_000)
    assert len(served) == 2
    assert answers == [HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)]


def test_a_request_without_a_response_in_time_is_given_up_once() -> None:
    events, answers = Events(), list[Message | None]()
    requests = Requests(_network(events), events)

    def serve(frame: bytes, reply: OnReply) -> None:
        events.after(500, lambda: _serve_heartbeat(frame, reply))

    requests.ask((-1, 2), HeartbeatRequest(), serve, answers.append, timeout_ms=400)
    events.run_until(399)
    assert answers == []
    events.run_until(1_000)
    assert answers == [None]


def test_some_plan_has_each_kind_that_is_planned() -> None:
    planned = set[FaultKind]()
    for seed in range(200):
        options = _options_of(seed, DURATION_MS)
        random = Random(f"{seed}/plan")
        plan = (*draw_plan(random, options), *draw_hidden_voters(random, options))
        planned |= {fault.kind for fault in plan}
    # Those two come of power cuts.
    assert set(FaultKind) - planned == {FaultKind.TORN_WRITE, FaultKind.LOST_NAME}


def test_a_disk_is_replaced_after_an_upgrade_once_where_there_is_one() -> None:
    for seed in range(60):
        options = _options_of(seed, 120_000)
        plan = draw_plan(Random(f"{seed}/plan"), options)
        after = [fault for fault in plan if fault.kind is FaultKind.WIPE_AFTER_UPGRADE]
        assert len(after) == (options.kind is QuorumKind.UPGRADED)
        upgrades = {fault.at_ms for fault in plan if fault.kind is FaultKind.UPGRADE}
        assert {fault.at_ms for fault in after} <= upgrades


def test_a_fault_that_came_later_leaves_the_other_faults_of_a_seed_alone() -> None:
    has_hidden = False
    for seed in range(1, 10):
        plan = World(seed, duration_ms=DURATION_MS).plan
        earlier = draw_plan(Random(f"{seed}/plan"), _options_of(seed, DURATION_MS))
        assert tuple(one for one in plan if one.kind is not FaultKind.HIDDEN_VOTER) == earlier
        has_hidden |= plan != earlier
    assert has_hidden


def test_a_snapshot_can_be_fetched_before_its_leader_drops_it() -> None:
    """Two worlds in which a replica fetched the first half of one snapshot after the other."""
    for seed in (116751297, 116751337):
        options = _options_of(seed, 120_000)
        snapshot_bytes, between_snapshots_ms = 640_000, 1_000
        assert (options.snapshot_every, options.client_count, options.think_ms) == (5, 3, 600)
        assert snapshot_bytes / options.raft.fetch_snapshot_bytes_max < between_snapshots_ms


def test_small_parts_stay_where_snapshots_are_rare() -> None:
    sizes = {_options_of(seed, DURATION_MS).raft.fetch_snapshot_bytes_max for seed in range(50)}
    assert {500, 4_096, 1024 * 1024} <= sizes


def test_a_world_without_its_faults_is_the_same_world() -> None:
    with_faults, without = (World(5, duration_ms=DURATION_MS, plan=plan) for plan in (None, ()))
    assert with_faults.around.options == without.around.options
    assert with_faults.around.cluster_id == without.around.cluster_id
    assert [one.directory_id for one in with_faults.quorum.nodes.values()] == [
        one.directory_id for one in without.quorum.nodes.values()
    ]


def test_a_trace_that_is_not_kept_has_the_same_digest() -> None:
    kept, forgotten = (Trace(lambda: 1.0, is_kept=is_kept) for is_kept in (True, False))
    for trace in (kept, forgotten):
        trace.say("something")
        trace.mix("1>2", b"frame")
        trace.add("for readers only")
    assert kept.digest == forgotten.digest
    assert [line.strip() for line in kept.lines] == [
        "0.0010  something",
        "0.0010  for readers only",
    ]
    assert forgotten.lines == []
    forgotten.mix("1>2", b"another frame")
    kept.mix("1>2", b"a frame like none before")
    assert kept.digest != forgotten.digest


def test_only_the_faults_that_matter_are_left() -> None:
    def fails(plan: Sequence[int]) -> bool:
        return {3, 17} <= set(plan)

    shrinker = Shrinker(fails)
    assert shrinker.shrink(range(40)) == [3, 17]
    assert shrinker.tries < 120


def test_a_plan_that_fails_without_any_fault_becomes_empty() -> None:
    def fails(plan: Sequence[int]) -> bool:
        return len(plan) < 100

    assert Shrinker(fails).shrink([1, 2, 3]) == []


def test_faults_are_made_weaker_as_long_as_that_fails() -> None:
    def fails(plan: Sequence[int]) -> bool:
        return sum(plan) >= 20

    def weaker(one: int) -> tuple[int, int]:
        return one // 4, one // 2

    assert Shrinker(fails, simpler=weaker).shrink([100, 3]) == [25]


def test_a_shrinker_gives_up_after_its_tries() -> None:
    plans: list[Sequence[int]] = []

    def fails(plan: Sequence[int]) -> bool:
        plans.append(plan)
        return False

    assert Shrinker(fails, tries_max=7).shrink(list(range(50))) == list(range(50))
    assert len(plans) == 7


def _result(
    seed: int,
    *,
    kind: WorldKind = WorldKind.QUORUM,
    failure: str | None = None,
    faults: dict[FaultKind, int] | None = None,
    checks: dict[str, int] | None = None,
) -> SeedResult:
    return SeedResult(
        seed=seed,
        kind=kind,
        duration_ms=120_000,
        digest="d",
        options="options",
        faults=dict.fromkeys(FaultKind, 1) if faults is None else faults,
        checks={one.id: 1 for one in ALL} if checks is None else checks,
        target_voters={},
        counts={"acknowledged writes": 10},
        events=100,
        cpu_seconds=0.5,
        broken=None if failure is None else "P1",
        failure=failure,
    )


def test_a_report_adds_up() -> None:
    report = QuorumReport()
    report.add(_result(1))
    report.add(_result(2, failure="P1 is broken", faults={FaultKind.LOST_MESSAGES: 5}))
    text = "\n".join(report.lines())
    assert text.startswith("2 seeds, 1 failed\n0.50 s of processor time, 100 events and 10 ack")
    assert "messages lost                              6     100%" in text
    assert "messages doubled                           1      50%" in text
    assert "at most 24 kinds in one seed" in text
    assert "P1   an epoch has at most one leader, ever" in text


def test_rare_faults_and_properties_never_checked_are_missed_over_many_seeds() -> None:
    report = QuorumReport()
    checks = {one.id: 1 for one in ALL if one.id != "P14"}
    for seed in range(SEEDS_FOR_SHARES):
        faults = {kind: int(kind is not FaultKind.WIPE or seed < 9) for kind in FaultKind}
        assert report.missing == []
        report.add(_result(seed, faults=faults, checks=checks))
    assert report.missing == [
        "'disk replaced' struck in 9 of 200 seeds",
        "P14 (a removed voter does not come back unless asked for) was never checked",
    ]


def test_a_failure_says_how_to_see_it_again() -> None:
    lines = list(failure_lines(_result(77, failure="P1 is broken: so")))
    assert lines[0].startswith("seed 77 failed at 0.000 ms: P1 is broken: so")
    assert lines[-1] == "  again: kvorum simulate --only quorum --seed 77 --duration 120"
    *_, again = failure_lines(_result(77, kind=WorldKind.BROKERS, failure="P38 is broken: so"))
    assert again == "  again: kvorum simulate --only brokers --seed 77"


def test_a_report_of_brokers_adds_up() -> None:
    report = BrokersReport()
    for seed in (1, 2):
        report.add(_result(seed, kind=WorldKind.BROKERS, faults={FaultKind.PAUSE: seed}))
    lines = list(report.lines())
    assert lines[0] == "2 seeds of brokers, 0 failed"
    assert "            20 acknowledged writes" in lines
    assert f"             3 controllers: {FaultKind.PAUSE.value}" in lines


@pytest.mark.process
def test_the_command_tells_of_failures_and_of_runs_that_differ(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(
        seed: int,
        *,
        kind: WorldKind,
        duration_ms: int,
        is_traced: bool = False,
        is_history_kept: bool = False,
    ) -> SeedResult:
        return _result(seed, kind=kind, failure="P1 is broken: so")

    monkeypatch.setattr(command, "run_seed", failing)
    assert main([*SIMULATE, "--seeds", "2", "--jobs", "1"]) == 1
    out = capsys.readouterr().out
    assert "again: kvorum simulate --only quorum --seed 7" in out
    assert "check failed: seed 7 gave trace d, and then" in out
