"""Health at the window's end, and what is wrong then."""

from collections.abc import Iterator, Sequence

from kvorum.spark.history.tables import BrokerState, Condition
from kvorum.spark.report.availability import ConditionFacts
from kvorum.spark.report.cluster_report import ClusterFacts
from kvorum.spark.report.log_files import LogFileFacts, Trouble
from kvorum.spark.report.markup import Markup, element, joined
from kvorum.spark.report.parts import (
    begin_of,
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
from kvorum.spark.report.texts import count_text, duration_text, time_text

_NAMES_MAX = 4
_IDS_MAX = 6
_CONDITIONS = (
    (Condition.OFFLINE, "without a leader", "bad"),
    (Condition.UNDER_MIN_ISR, "below min ISR", "bad"),
    (Condition.UNDER_REPLICATED, "under-replicated", "warning"),
)


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
    class_ = "warning" if missing else "calm"
    yield _figure("voters", str(len(facts.quorum.voters)), voters, class_)
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
