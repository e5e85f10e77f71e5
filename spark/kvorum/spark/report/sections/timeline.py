"""Everything over time, on one axis: partitions in trouble, brokers, controllers."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from kvorum.history.tables import BrokerState, Condition
from kvorum.spark.report.brokers import BrokerFacts, StateSpan
from kvorum.spark.report.charts import lane, plot, span, step_area, time_axis
from kvorum.spark.report.cluster_report import ClusterFacts
from kvorum.spark.report.markup import Markup, element, joined
from kvorum.spark.report.parts import more, note, section
from kvorum.spark.report.texts import count_text, duration_text, time_text

BROKERS_MAX: Final = 40
CONTROLLERS_MAX: Final = 9
_AREA_HEIGHT: Final = 44
_BROKER_HEIGHT: Final = 40
_STRIP_HEIGHT: Final = 6
_STRIP_TOP: Final = _BROKER_HEIGHT - _STRIP_HEIGHT
_EPOCH_HEIGHT: Final = 14

_CONDITIONS: Final = (
    (Condition.OFFLINE, "No leader", "bad"),
    (Condition.UNDER_MIN_ISR, "Below min ISR", "warning"),
    (Condition.UNDER_REPLICATED, "Under-replicated", "low"),
)
_STATES: Final = {
    BrokerState.UNFENCED: "unfenced",
    BrokerState.CONTROLLED_SHUTDOWN: "shutdown",
    BrokerState.FENCED: "fenced",
}


def timeline(facts: ClusterFacts) -> Markup:
    """Return the lanes over one axis of time."""
    step = duration_text(facts.window.step_ms)
    return section(
        "timeline",
        "Over time",
        element(
            "div",
            time_axis(facts.window),
            element("h3", "Partitions in trouble ", note(f"highest number in each {step}")),
            [_condition_lane(facts, *each) for each in _CONDITIONS],
            list(_broker_lanes(facts)),
            element("h3", "Controllers ", note("when each was the active one")),
            list(_controller_lanes(facts)) or element("p", "No epoch is in the log."),
            time_axis(facts.window),
            class_="lanes",
        ),
    )


def _legend() -> Markup:
    return element(
        "span",
        element("span", class_="key unfenced"),
        "in service ",
        element("span", class_="key shutdown"),
        "controlled shutdown ",
        element("span", class_="key fenced"),
        "fenced ",
        element("span", class_="key absent"),
        "not registered",
        class_="note legend",
    )


def _condition_lane(facts: ClusterFacts, condition: Condition, name: str, class_: str) -> Markup:
    found = facts.availability.conditions[condition]
    highest = int(found.highest.max(initial=0))
    title = f"{name}: at most {count_text(highest, 'partition')} at one time"
    area = step_area(
        found.highest, facts.window.edges_ms(), facts.window, height=_AREA_HEIGHT, highest=highest
    )
    value = joined(element("b", f"{found.open_count:,}"), " at the end")
    label = joined(name, note(f"peak {highest:,}" if highest else "never"))
    return lane(label, plot(title, facts.window, _AREA_HEIGHT, area), value, class_=class_)


def _broker_lanes(facts: ClusterFacts) -> Iterator[Markup]:
    # Of too many brokers those that were out of service longest.
    by_trouble = sorted(facts.brokers, key=lambda one: -one.out_of_service_ms)
    shown = sorted(by_trouble[:BROKERS_MAX], key=lambda one: one.broker_id)
    if not shown:
        yield element("h3", "Brokers")
        yield element("p", "No broker was registered.")
        return
    led = facts.leadership.led
    areas = [led[broker.broker_id] for broker in shown if broker.broker_id in led]
    highest = max((float(area.max()) for area in areas), default=0.0)
    scale = f"area: partitions led, up to {highest:,.0f}; strip: "
    yield element("h3", "Brokers ", note(scale), _legend())
    counts = {load.broker_id: load.leader_count for load in facts.leadership.loads}
    for broker in shown:
        yield _broker_lane(facts, broker, highest, counts.get(broker.broker_id, 0))
    yield joined(more(len(facts.brokers) - len(shown), "brokers with less time out of service"))


def _broker_lane(facts: ClusterFacts, broker: BrokerFacts, highest: float, led_now: int) -> Markup:
    window = facts.window
    led = facts.leadership.led.get(broker.broker_id, np.zeros(0))
    # A short bad state must not lie below a long good one.
    by_state = sorted(broker.spans, key=lambda each: list(_STATES).index(each.state))
    shapes = [
        *(
            span(window, each.begin_ms, each.end_ms, top=0, height=_STRIP_TOP, class_="tint")
            for each in broker.spans
            if each.state is BrokerState.FENCED
        ),
        *step_area(led, window.edges_ms(), window, height=_STRIP_TOP - 2, highest=highest),
        *(_state_span(facts, each) for each in by_state),
    ]
    out = duration_text(broker.out_of_service_ms)
    title = f"Broker {broker.broker_id}: leads {led_now:,} at the end, out of service for {out}"
    label = joined(f"Broker {broker.broker_id}", _state_note(broker))
    value = joined(element("b", f"{led_now:,}"), " led")
    return lane(label, plot(title, window, _BROKER_HEIGHT, shapes), value, class_="broker")


def _state_note(broker: BrokerFacts) -> Markup | None:
    if broker.is_in_service:
        return note(broker.rack) if broker.rack else None
    text = "unregistered" if broker.state is None else broker.state.value.replace("_", " ")
    return element("span", text, class_="note bad")


def _state_span(facts: ClusterFacts, each: StateSpan) -> Markup:
    title = None
    if each.state is not BrokerState.UNFENCED:
        times = f"{time_text(each.begin_ms)} to {time_text(each.end_ms)}"
        state = each.state.value.replace("_", " ") + (" at times" if each.is_summary else "")
        title = f"{state}, {times}, {duration_text(each.end_ms - each.begin_ms)}"
    return span(
        facts.window,
        each.begin_ms,
        each.end_ms,
        top=_STRIP_TOP,
        height=_STRIP_HEIGHT,
        class_=_STATES[each.state],
        title=title,
    )


def _controller_lanes(facts: ClusterFacts) -> Iterator[Markup]:
    quorum, window = facts.quorum, facts.window
    shown = sorted(
        quorum.shares[:CONTROLLERS_MAX], key=lambda share: (share.leader is None, share.leader or 0)
    )
    for share in shown:
        bars = [
            span(
                window,
                epoch.begin_ms,
                epoch.end_ms,
                top=2,
                height=_EPOCH_HEIGHT - 4,
                class_="epoch",
                title=f"epoch {epoch.epoch}, {time_text(epoch.begin_ms)} to "
                f"{time_text(epoch.end_ms)} UTC, {duration_text(epoch.duration_ms)}",
            )
            for epoch in quorum.epochs
            if epoch.leader == share.leader
        ]
        name = "Not known" if share.leader is None else f"Controller {share.leader}"
        led = duration_text(share.led_ms)
        title = f"{name}: led for {led} in {count_text(share.epoch_count, 'epoch')}"
        value = joined(element("b", f"{share.led_ms / window.length_ms:.0%}"), " of the time")
        yield lane(name, plot(title, window, _EPOCH_HEIGHT, bars), value, class_="controller")
    yield joined(more(len(quorum.shares) - len(shown), "controllers"))
