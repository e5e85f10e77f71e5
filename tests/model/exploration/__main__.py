"""Explore the states of the design: ``python -m tests.model.exploration [--large] [NAME ...]``."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from time import monotonic

from tests.model.exploration.actions import say
from tests.model.exploration.design import Bounds
from tests.model.exploration.explore import Broken, Explored, Explorer
from tests.model.exploration.state import Node, State
from tests.model.exploration.topics import LARGE, MISTAKES, QUICK


def main(arguments: Sequence[str]) -> int:
    """Explore what is asked for; return 1 if the correct design broke, or a mistake did not."""
    parser = argparse.ArgumentParser(prog="python -m tests.model.exploration")
    parser.add_argument("--large", action="store_true", help="the large bounds")
    parser.add_argument("--mistakes", action="store_true", help="the designs with a mistake")
    parser.add_argument("--states-max", type=int, help="stop an exploration behind so many states")
    parser.add_argument("names", nargs="*", help="only what has one of these words in its name")
    options = parser.parse_args(arguments)
    words = options.names or [""]
    if options.mistakes:
        return _explore_mistakes(words)
    return _explore(LARGE if options.large else QUICK, words, options.states_max)


def _explore(topics: Mapping[str, Bounds], words: list[str], states_max: int | None) -> int:
    explored: list[Explored] = []
    for name, bounds in topics.items():
        if not any(word in name for word in words):
            continue
        began = monotonic()
        found = Explorer(bounds, states_max=states_max).run()
        explored.append(found)
        how = "all of them" if found.is_exhausted else "NOT all of them"
        _say(
            f"{name}: {found.states} states, {found.transitions} transitions, depth {found.depth}, "
            f"{how}, {monotonic() - began:.1f} s"
        )
        if found.broken is not None:
            _say_way(found.broken)
    broken = sum(found.broken is not None for found in explored)
    _say(
        f"{len(explored)} topics, {sum(found.is_exhausted for found in explored)} of them "
        f"exhausted, {sum(found.states for found in explored):,} states, "
        f"{sum(found.transitions for found in explored):,} transitions, {broken} broken"
    )
    return int(broken > 0)


def _explore_mistakes(words: list[str]) -> int:
    is_missed = False
    for name, mistake in MISTAKES.items():
        if not any(word in name for word in words):
            continue
        for invariant in mistake.breaks:
            explorer = Explorer(mistake.bounds, design=mistake.design, invariants=[invariant])
            found = explorer.run()
            _say(f"\n{name}: {found.states} states")
            if found.broken is None:
                is_missed = True
                _say(f"  {invariant} HOLDS")
            else:
                _say_way(found.broken)
    return int(is_missed)


def _say_way(broken: Broken) -> None:
    _say(f"  {broken.invariant} does not hold after:")
    for label, state in broken.way:
        _say(f"    {say(label):34} {_nodes(state)}")


def _nodes(state: State) -> str:
    return "   ".join(_node(node) for node in state.nodes)


def _node(node: Node) -> str:
    """Return a node in short: role, epoch, log (epochs; a bar where the durable part ends).

    A stroke is for each disk that was replaced.
    """
    records = [f"{entry.epoch}{'v' if entry.voters else ''}" for entry in node.log]
    records.insert(node.durable, "|")
    name = node.role[:4] + "'" * node.directory
    return f"{name}@{node.epoch} [{' '.join(records)}] {node.watermark}"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
