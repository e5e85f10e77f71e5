"""``kvorum log why``: how a partition came by its leader, its ISR and its replicas."""

import argparse
import json
import sys
from pathlib import Path

from kvorum.cli import FAILED, OK
from kvorum.cli.log_tool import PROGRAM
from kvorum.cli.log_tool.moments import add_moment, moment_of, offset
from kvorum.cli.progress import read_progress
from kvorum.inspection.history_source import history_source
from kvorum.inspection.moment import demand_offset, end_offset_of
from kvorum.inspection.partition_story.change import PartitionChange
from kvorum.inspection.partition_story.story import partition_story, reasons_text, story_lines
from kvorum.inspection.utc_text import utc_text

NAME = "why"
HELP = "print the records that led to a partition's leader, ISR and replicas, and the reasons"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the partition, the path and options."""
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("partition", metavar="PARTITION", type=offset)
    parser.add_argument(
        "path",
        type=Path,
        metavar="PATH",
        help="a node's log directory, or its __cluster_metadata-0",
    )
    add_moment(parser)
    parser.add_argument("--json", action="store_true", help="print JSON, an object for a change")


def run(arguments: argparse.Namespace) -> int:
    """Print the story of the partition."""
    path, moment = arguments.path, moment_of(arguments)
    topic, partition = arguments.topic, arguments.partition
    with read_progress(PROGRAM) as reading:
        end_offset = end_offset_of(path, moment, warn=reading.warn, tell=reading.tell)
        source = history_source(path, warn=reading.warn, tell=reading.tell)
        story = partition_story(source, topic, partition, end_offset=end_offset)
    if story.stopped_by is None:
        demand_offset(path, moment, story.end.offset + 1)
    if arguments.json:
        for change in story.changes:
            print(json.dumps(_change_object(change)))
    else:
        print("\n".join(story_lines(story)))
    if story.stopped_by is None:
        return OK
    print(f"{PROGRAM}: {story.stopped_by}", file=sys.stderr)
    print(f"The log goes on after that. All of its damage: {PROGRAM} check {path}", file=sys.stderr)
    return FAILED


def _change_object(change: PartitionChange) -> dict[str, object]:
    state = change.after
    return {
        "offset": change.offset,
        "time": utc_text(change.timestamp_ms),
        "epoch": change.epoch,
        "reasons": [
            {"reason": each.kind.value, "brokers": list(each.brokers)} for each in change.reasons
        ],
        "text": reasons_text(change),
        "leader": state.leader,
        "leaderEpoch": state.leader_epoch,
        "partitionEpoch": state.partition_epoch,
        "isr": list(state.isr),
        "elr": list(state.eligible_leader_replicas),
        "replicas": list(state.replicas),
        "addingReplicas": list(state.adding_replicas),
        "removingReplicas": list(state.removing_replicas),
        "directories": list(state.directories),
    }
