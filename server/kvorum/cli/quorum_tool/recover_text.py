"""The text of ``kvorum quorum recover``: what was found, the forecast, and what is to be done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kvorum.inspection.recovery.forecast import Forecast, Loss
from kvorum.inspection.recovery.plan import RecoveryPlan
from kvorum.inspection.recovery.record import RecoveryRecord
from kvorum.inspection.recovery.survivor import Survivor
from kvorum.raft.voter_set import Voter, VoterSet
from kvorum.wire.uuid_text import uuid_to_text

_LABEL_WIDTH = 15


def plan_lines(plan: RecoveryPlan) -> Iterator[str]:
    """Yield the lines about a plan."""
    chosen = plan.chosen
    yield from _entry("Cluster", [f"{chosen.cluster_id}, kraft.version {chosen.kraft_version}"])
    yield from _entry("Survivors", [_survivor_text(one) for one in plan.survivors])
    yield from _entry("Recovered from", [f"node {chosen.key.id}, {chosen.directory}"])
    yield from _entry("Its voters", _voters_texts(chosen))
    yield from _entry("Kept", _kept_texts(plan.forecast))
    yield from _entry("Committed", _committed_texts(plan.forecast))
    yield from _entry("Lost", _lost_texts(plan.forecast))
    yield from _entry("To be written", _written_texts(plan))


def afterwards_lines(survivor: Survivor, voter: Voter) -> Iterator[str]:
    """Yield the lines about what the operator has to do after the recovery."""
    node_id = survivor.key.id
    texts = ["never start the lost controllers with their old directories: they would elect again"]
    if survivor.kraft_version == 0:
        texts += [
            f"set controller.quorum.voters={_address_text(voter)} on node {node_id} and on brokers",
            f"start node {node_id}, then the brokers",
            "let voters be added: kafka-features upgrade --feature kraft.version=1",
        ]
    else:
        texts += [
            "name the new controllers in controller.quorum.bootstrap.servers",
            f"start node {node_id}, then the brokers",
        ]
    texts += [
        "format the other controllers, survivors too, with empty directories:",
        f"   kafka-storage format -t {survivor.cluster_id} --no-initial-controllers -c FILE",
        "start them, and add one after the other: kafka-metadata-quorum add-controller",
    ]
    yield from _entry("Afterwards", texts)


def done_line(survivor: Survivor, record: RecoveryRecord) -> str:
    """Return the line about a recovery that is done already."""
    return (
        f"Node {survivor.key.id} ({survivor.directory}) was recovered at {record.time} and is the "
        f"only voter: there is nothing to do. See {record.path}"
    )


def _entry(label: str, texts: Iterable[str]) -> Iterator[str]:
    head = f"{label}:"
    for text in texts:
        yield f"{head:<{_LABEL_WIDTH}} {text}"
        head = ""


def _survivor_text(one: Survivor) -> str:
    part = "voter" if one.is_voter else "observer"
    stored = "no quorum-state" if one.election is None else f"epoch {one.election.leader_epoch}"
    text = (
        f"node {one.key.id}, {part}, {one.directory}: log from {one.start_offset} to "
        f"{one.end.offset}, last epoch {one.end.epoch}; {stored}"
    )
    if one.torn_tail is not None:
        text += f"; {one.torn_tail.size} bytes of half a batch behind it"
    return text


def _voters_texts(chosen: Survivor) -> Iterator[str]:
    yield _ids_text(chosen.voters)
    if not chosen.recorded or chosen.kraft_version == 0:
        return
    latest = chosen.recorded[-1]
    if latest.end > chosen.committed.end:
        before = [record.voters for record in chosen.recorded[:-1]]
        rest = f"; before it {_ids_text(before[-1])}" if before else ""
        yield (
            f"the record of them at offset {latest.end.offset - 1} may never have been "
            f"committed{rest}"
        )


def _kept_texts(forecast: Forecast) -> Iterator[str]:
    kept = forecast.kept
    yield f"every record of that log: all below offset {kept.offset}"
    yield (
        f"so of the acknowledged records: all of epochs below {kept.epoch}, and those of epoch "
        f"{kept.epoch} below offset {kept.offset}"
    )


def _committed_texts(forecast: Forecast) -> Iterator[str]:
    end, proof = forecast.committed
    yield f"certainly everything below offset {end.offset}: {proof.value}"
    if forecast.unproven_count:
        yield (
            f"offsets {end.offset} to {forecast.kept.offset - 1} may never have been committed; "
            "the recovery commits them"
        )


def _lost_texts(forecast: Forecast) -> Iterator[str]:
    kept, ids = forecast.kept, ", ".join(map(str, forecast.lost_ids))
    above = (
        f"records of epoch {kept.epoch} from offset {kept.offset} on, and of epochs above "
        f"{kept.epoch}"
    )
    match forecast.loss:
        case Loss.NONE:
            yield "nothing that was acknowledged: every majority of the voters has a survivor"
        case Loss.NONE_UNLESS_VOTERS_CHANGED:
            yield (
                "nothing that was acknowledged, unless the voters were changed without any of "
                f"these survivors: then {above}"
            )
        case Loss.POSSIBLE:
            yield f"{above}, if there were any"
            yield (
                f"at most what a majority without these survivors acknowledged, with {ids}; no "
                "surviving file tells whether it did"
            )
        case Loss.CERTAIN:
            yield f"{above}; some of them are known to be committed, up to offset " + str(
                forecast.committed.end.offset - 1
            )
    if forecast.is_leader_of_last_epoch and forecast.loss is not Loss.NONE:
        yield (
            f"of epoch {kept.epoch} nothing, unless a power cut has shortened the log: this node "
            "was its leader"
        )


def _written_texts(plan: RecoveryPlan) -> Iterator[str]:
    chosen = plan.chosen
    if plan.is_dynamic:
        yield (
            f"{chosen.log_directory}: at offset {chosen.end.offset} one batch of epoch "
            f"{plan.epoch} with LEADER_CHANGE, KRAFT_VERSION and KRAFT_VOTERS: "
            f"{_voter_text(plan.voter)}"
        )
        yield f"{chosen.log_directory}/quorum-state: epoch {plan.epoch}, leader {chosen.key.id}"
    else:
        yield (
            f"{chosen.log_directory}/quorum-state: epoch {plan.epoch}, voters "
            f"{_ids_text(plan.voters)}"
        )
    yield f"{chosen.directory}: a record of this recovery, kvorum-quorum-recovery-TIME.json"


def _voter_text(voter: Voter) -> str:
    directory = "" if voter.key.directory_id is None else f":{uuid_to_text(voter.key.directory_id)}"
    return f"{_address_text(voter)}{directory}"


def _address_text(voter: Voter) -> str:
    if not voter.endpoints:
        return f"{voter.key.id}@HOST:PORT"
    host, port = voter.endpoints[0].host, voter.endpoints[0].port
    return f"{voter.key.id}@[{host}]:{port}" if ":" in host else f"{voter.key.id}@{host}:{port}"


def _ids_text(voters: VoterSet) -> str:
    return ", ".join(map(str, voters.ids))
