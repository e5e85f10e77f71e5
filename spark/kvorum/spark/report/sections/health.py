"""Health at the window's end, and what is wrong then."""

from collections.abc import Iterator, Sequence

from kvorum.history.tables import BrokerState, Condition
from kvorum.spark.report.availability import ConditionFacts, Incident, OfflineDay
from kvorum.spark.report.cluster_report import ClusterFacts
from kvorum.spark.report.events import Event, Severity
from kvorum.spark.report.log_files import LogFileFacts, Trouble
from kvorum.spark.report.markup import Content, Markup, element, joined
from kvorum.spark.report.parts import (
    begin_of,
    end_of,
    folded,
    how_ended,
    incident_partitions,
    missing_replicas,
    more,
    section,
    status,
    table,
    time_element,
    trouble_class,
    why_lost,
)
from kvorum.spark.report.sections.log_files import file_sentences, wrong_files
from kvorum.spark.report.texts import clock_text, count_text, day_text, duration_text, time_text
from kvorum.spark.report.value_history import ValueHistory

_NAMES_MAX = 4
_IDS_MAX = 6
_CONDITIONS = (
    (Condition.OFFLINE, "without a leader", "bad"),
    (Condition.UNDER_MIN_ISR, "below min ISR", "bad"),
    (Condition.UNDER_REPLICATED, "under-replicated", "warning"),
)

_SHOWN = 12
"""The number of events that are shown at once."""
_MARKS = {Severity.BAD: "■", Severity.WARNING: "▲", Severity.GOOD: "●", Severity.PLAIN: "·"}

_SHORTAGES = (
    (Condition.UNDER_MIN_ISR, "Below min ISR"),
    (Condition.UNDER_REPLICATED, "Under-replicated"),
)
"""The conditions of a partition that lacks replicas, with their titles."""


def health(files: LogFileFacts, facts: ClusterFacts) -> Markup:
    """Return the verdict and the figures; what is wrong with the log's files comes first."""
    trouble = max(files.trouble, facts.trouble)
    return element(
        "section",
        element("h2", "Health", class_="unseen", id="health-title"),
        _verdict(trouble, " ".join([*file_sentences(files), verdict(facts)])),
        element("dl", [*_file_figures(files), *_figures(facts)], class_="figures"),
        id="health",
        aria_labelledby="health-title",
    )


def _verdict(trouble: Trouble, text: str) -> Markup:
    class_ = f"verdict {trouble_class(trouble)}"
    return element("p", status(trouble), element("span", text), class_=class_)


def verdict(facts: ClusterFacts) -> str:
    """Return one sentence about the cluster's state at the window's end."""
    partitions = facts.leadership.partition_count
    if facts.is_stopped:
        return "The cluster is stopped: all of its brokers have left in good order."
    if offline := facts.open_count(Condition.OFFLINE):
        return f"{count_text(offline, 'partition has', 'partitions have')} no leader."
    if below := facts.open_count(Condition.UNDER_MIN_ISR):
        have = count_text(below, "partition has", "partitions have")
        return f"{have} fewer replicas in sync than min.insync.replicas."
    if behind := facts.open_count(Condition.UNDER_REPLICATED):
        are = count_text(behind, "partition is", "partitions are")
        return f"{are} under-replicated; every partition has a leader."
    if count := len(facts.out_of_service):
        return f"{count_text(count, 'broker is', 'brokers are')} out of service."
    if partitions == 0:
        return "There are no partitions, and no broker is out of service."
    return f"All replicas of {count_text(partitions, 'partition')} are in sync."


def _file_figures(files: LogFileFacts) -> Iterator[Markup]:
    class_ = trouble_class(files.trouble)
    if replicas := files.diverged_replicas:
        names = ", ".join(replicas[:_NAMES_MAX])
        note = f"{names}, …" if len(replicas) > _NAMES_MAX else names
        yield _figure("log replicas diverged", f"{len(replicas):,}", note, class_)
    if files.damages:
        latest = files.damages[0]
        note = f"found by run {latest.run:,}, {time_text(latest.found_ms)}"
        yield _figure("damaged files", f"{len(files.damaged_paths):,}", note, class_)


def _figures(facts: ClusterFacts) -> Iterator[Markup]:
    total = f"of {facts.leadership.partition_count:,}"
    for condition, name, class_ in _CONDITIONS:
        count = facts.open_count(condition)
        yield _figure(f"partitions {name}", f"{count:,}", total, class_ if count else "calm")
    out, registered = facts.out_of_service, facts.registered
    note = f"of {len(registered):,}"
    if out:
        note += f"; out: {_some_ids([one.broker_id for one in out])}"
    in_service = len(registered) - len(out)
    yield _figure("brokers in service", f"{in_service:,}", note, "bad" if out else "calm")
    epoch = facts.quorum.current
    if epoch is None or epoch.leader is None:
        yield _figure("active controller", "-", "its election is not in the log", "calm")
    else:
        led = duration_text(epoch.duration_ms)
        yield _figure("active controller", str(epoch.leader), f"epoch {epoch.epoch}, {led}", "calm")
    voters = _some_ids(facts.quorum.voters) or "not in the log"
    missing = facts.unregistered_voters
    if missing:
        voters += f"; not registered: {_some_ids(missing)}"
    yield _figure("voters", str(len(facts.quorum.voters)), voters, "warning" if missing else "calm")
    for feature in facts.features[:1]:
        others = "; ".join(f"{one.feature} {one.text}" for one in facts.features[1:4])
        if facts.quorum.kraft_version is not None:
            others = f"kraft.version {facts.quorum.kraft_version}" + (others and f"; {others}")
        yield _figure(feature.feature, feature.text, others, "calm")


def _figure(name: str, value: str, note: str, class_: str) -> Markup:
    return element(
        "div",
        element("dt", name),
        element("dd", value, class_="number"),
        element("dd", note, class_="note") if note else None,
        class_=class_,
    )


def _some_ids(ids: Sequence[int]) -> str:
    listed = ", ".join(map(str, ids[:_IDS_MAX]))
    return f"{listed}, …" if len(ids) > _IDS_MAX else listed


def files_alone(files: LogFileFacts) -> Iterator[Markup]:
    """Yield what is wrong with the files of a cluster of which nothing else is known."""
    if files.trouble:
        sentence = " ".join(file_sentences(files))
        yield element("section", _verdict(files.trouble, sentence), id="health")
        yield section("now", "Wrong", *wrong_files(files))


def wrong_now(files: LogFileFacts, facts: ClusterFacts) -> Markup:
    """Return what is wrong with the files and at the window's end, with since when and why."""
    content = [*wrong_files(files), *_wrong(facts)]
    if not content:
        content = [element("p", "Nothing: every replica is in sync and every broker in service.")]
    return section("now", "Wrong at the end", *content)


def _wrong(facts: ClusterFacts) -> Iterator[Markup]:
    out = facts.out_of_service
    if out:
        yield element("h3", count_text(len(out), "broker") + " out of service")
        yield element("ul", [_broker_line(facts, one.broker_id) for one in out[:10]])
        yield joined(more(len(out) - 10, "brokers"))
    for condition, name, _ in _CONDITIONS:
        yield from _open_table(facts.availability.conditions[condition], name)


def _open_table(found: ConditionFacts, name: str) -> Iterator[Markup]:
    if found.open_count == 0:
        return
    is_lost = found.condition is Condition.OFFLINE
    yield element("h3", f"{count_text(found.open_count, 'partition')} {name}")
    yield table(
        ("Partitions", "Since", "#For", "Why" if is_lost else "Missing replicas"),
        [
            (
                incident_partitions(incident),
                begin_of(incident.longest),
                duration_text(incident.longest.duration_ms),
                why_lost(incident.longest) if is_lost else missing_replicas(incident.longest),
            )
            for incident in found.open
        ],
        caption=f"Partitions {name} at the end, the longest first",
    )
    shown = sum(incident.partition_count for incident in found.open)
    yield joined(more(found.open_count - shown, "partitions"))


def _broker_line(facts: ClusterFacts, broker_id: int) -> Markup:
    broker = next(one for one in facts.brokers if one.broker_id == broker_id)
    what = "fenced" if broker.state is BrokerState.FENCED else "in controlled shutdown"
    since = time_element(broker.state_since_ms)
    length = duration_text(max(0, facts.window.end_ms - broker.state_since_ms))
    return element(
        "li", element("strong", f"Broker {broker_id}"), f" {what} since ", since, f", {length}"
    )


def changed_last(facts: ClusterFacts) -> Markup:
    """Return the latest events, latest first, by day."""
    events = facts.events
    if not events:
        return section("changed", "Changed last", element("p", "Nothing changed in this time."))
    rest = events[_SHOWN:]
    return section(
        "changed",
        "Changed last",
        *_days(events[:_SHOWN]),
        folded(f"{len(rest)} earlier", *_days(rest)) if rest else None,
    )


def _days(events: tuple[Event, ...]) -> list[Markup]:
    days: dict[str, list[Event]] = {}
    for event in events:
        days.setdefault(day_text(event.time_ms), []).append(event)
    return [
        element(
            "div",
            element("h3", day),
            element("ol", [_line(event) for event in found], class_="events"),
        )
        for day, found in days.items()
    ]


def _line(event: Event) -> Markup:
    return element(
        "li",
        time_element(event.time_ms, clock_text(event.time_ms)),
        element(
            "span",
            _MARKS[event.severity],
            class_=f"mark {event.severity.value}",
            aria_hidden="true",
        ),
        element("span", element("span", event.kind, class_="kind"), " ", event.text),
    )


def values(facts: ClusterFacts) -> Markup:
    """Return the latest changes of each kind, folded."""
    found = [_kind(each) for each in facts.values if each.count]
    content = found or [element("p", "None of them changed in this time.")]
    lead = "Values of sensitive keys, and of keys that Kafka does not define, are hidden."
    return section("values", "Configurations and access", *content, lead=lead)


def _kind(history: ValueHistory) -> Markup:
    rows = [
        (time_element(change.time_ms), change.subject, change.change, f"{change.offset:,}")
        for change in history.changes
    ]
    name = history.kind[0].upper() + history.kind[1:]
    return folded(
        joined(element("b", name), f" {count_text(history.count, 'change')}"),
        table(("Time", "Of", "Change", "#Offset"), rows, caption=f"{name}: the latest changes"),
        more(history.count - len(rows), "changes before"),
    )


def offline(facts: ClusterFacts) -> Markup:
    """Return the days on which partitions had no leader, latest first."""
    found = facts.availability.conditions[Condition.OFFLINE]
    title = "Partitions without a leader"
    if found.interval_count == 0:
        return section("offline", title, element("p", "Every partition had a leader all the time."))
    days = facts.availability.offline_days
    return section(
        "offline",
        title,
        *(_day(day, is_open=index == 0) for index, day in enumerate(days)),
        more(facts.availability.more_days_count, "days before"),
        lead=f"{count_text(found.interval_count, 'interval')} of "
        f"{count_text(found.partition_count, 'partition')}, "
        f"{duration_text(found.total_ms)} in total. Days are days of UTC.",
    )


def _day(day: OfflineDay, *, is_open: bool) -> Markup:
    name = day_text(day.day_ms)
    summary = joined(
        element("b", name),
        f" {count_text(day.partition_count, 'partition')}, {duration_text(day.total_ms)} in total",
    )
    rows = [
        (
            outage.partition,
            begin_of(outage),
            end_of(outage),
            duration_text(outage.duration_ms),
            why_lost(outage),
            how_ended(outage),
        )
        for outage in day.outages
    ]
    columns = (
        "Partition",
        "No leader from",
        "to",
        "#Duration",
        "Why it lost its leader",
        "How it ended",
    )
    return folded(
        summary,
        table(columns, rows, caption=f"Partitions without a leader on {name}, the longest first"),
        more(day.more_count, "intervals"),
        is_open=is_open,
        id_=f"offline-{name.split()[1]}",
    )


def recoveries(facts: ClusterFacts) -> Markup:
    """Return the longest intervals with too few replicas in sync."""
    content = list(_tables(facts)) or [element("p", "All replicas were in sync all the time.")]
    lead = (
        "Partitions that fell behind and recovered together are one line. A replica is behind "
        "where its broker was in service all the time."
    )
    return section("recoveries", "Slowest recoveries", *content, lead=lead)


def _tables(facts: ClusterFacts) -> Iterator[Markup]:
    for condition, name in _SHORTAGES:
        incidents = facts.availability.slowest[condition]
        if incidents:
            yield element("h3", name)
            yield table(
                ("Partitions", "From", "To", "#Duration", "Missing replicas"),
                map(_recovery, incidents),
                caption=f"{name}: the longest intervals",
            )


def _recovery(incident: Incident) -> tuple[Content, ...]:
    outage = incident.longest
    return (
        incident_partitions(incident),
        begin_of(outage),
        end_of(outage),
        duration_text(outage.duration_ms),
        missing_replicas(outage),
    )
