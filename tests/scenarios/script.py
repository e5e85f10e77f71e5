"""The little language of the scenario files, and how they are run.

A file is a list of steps, each a command, a line of dashes, the trace it left, and an empty line.
Lines before a command that begin with ``#`` say what it is about. Commands:

    bring up 1 2 3        make and start voters with empty disks
    observer 4            make and start an observer
    advance 1500          let milliseconds pass; messages stay on their way
    settle                deliver everything, and make everything durable, until nothing moves
    run 3000              let milliseconds pass and settle, in steps of 10; fetches that bring
                          nothing are left out of the trace
    deliver 1>2           deliver the first message on its way from 1 to 2
    drop 1>2              lose it
    cut 1 / heal 1        let a node reach nobody / all that can be reached
    propose 1 3           propose records to a node
    hold 1 / release 1    do not make a node's log durable by itself / do so again
    flush 1               make it durable once
    crash 1 / start 1     stop a node with the loss of what is not durable / start it again
    snapshot 1            let a node take a snapshot of what is committed and drop the log before
    resign 1 / shutdown 1 ask a leader to go
    show                  say what every node is and has
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.scenarios.simulation import Simulation

STEP_MS = 10


@dataclass
class Step:
    """One command with what is said about it before, and its trace."""

    about: list[str]
    command: str
    trace: list[str]


def parse(text: str) -> list[Step]:
    """Return the steps of a scenario file."""
    steps: list[Step] = []
    for block in text.strip().split("\n\n"):
        lines = block.splitlines()
        about = [line for line in lines if line.startswith("#")]
        rest = lines[len(about) :]
        steps.append(Step(about, rest[0], rest[2:]))
    return steps


def render(steps: list[Step]) -> str:
    """Return the file's text."""
    blocks = ["\n".join([*step.about, step.command, "----", *step.trace]) for step in steps]
    return "\n\n".join(blocks) + "\n"


def run(steps: list[Step]) -> list[Step]:
    """Run all commands on a fresh cluster; return the steps with the traces they leave now."""
    trace: list[str] = []
    simulation = Simulation(say=trace.append)
    done: list[Step] = []
    for step in steps:
        trace.clear()
        execute(simulation, step.command, trace.append)
        told = [line for line in trace if not (step.command.startswith("run") and is_routine(line))]
        done.append(Step(step.about, step.command, told))
    return done


def is_routine(line: str) -> bool:
    """Tell whether a line is about a fetch that brought nothing, of which there are too many."""
    return "fetches from" in line or "answers the fetch (0 records" in line


def execute(simulation: Simulation, command: str, say: Callable[[str], None]) -> None:
    """Do what one line says."""
    match command.split():
        case ["bring", "up", *ids]:
            simulation.bring_up(map(int, ids))
        case ["observer", node]:
            simulation.add_observer(int(node))
        case ["advance", duration]:
            simulation.advance(float(duration))
        case ["settle"]:
            simulation.settle()
        case ["run", duration]:
            run_for(simulation, int(duration))
        case ["deliver" | "drop" as verb, route]:
            index = find(simulation, route)
            simulation.deliver(index) if verb == "deliver" else simulation.drop(index)
        case ["propose", node, count]:
            simulation.propose(int(node), [f"record {i}" for i in range(int(count))])
        case ["show"]:
            show(simulation, say)
        case [verb, node]:
            execute_on_node(simulation, verb, int(node))
        case _:
            raise ValueError(f"no such command: {command}")


def execute_on_node(simulation: Simulation, verb: str, node_id: int) -> None:
    """Do what a line with a verb and a node says."""
    verbs: dict[str, Callable[[int], None]] = {
        "cut": simulation.cut.add,
        "heal": simulation.cut.discard,
        "flush": simulation.flush,
        "crash": simulation.crash,
        "start": simulation.start,
        "snapshot": simulation.make_snapshot,
        "resign": simulation.resign,
        "shutdown": simulation.shut_down,
    }
    if verb in {"hold", "release"}:
        simulation.nodes[node_id].flushes = verb == "release"
    elif verb in verbs:
        verbs[verb](node_id)
    else:
        raise ValueError(f"no such command: {verb}")


def run_for(simulation: Simulation, duration_ms: int) -> None:
    """Let time pass in small steps, everything being delivered in each."""
    for _ in range(duration_ms // STEP_MS):
        simulation.settle()
        simulation.advance(STEP_MS)
    simulation.settle()


def find(simulation: Simulation, route: str) -> int:
    """Return where the first message on a route is."""
    sender, receiver = map(int, route.split(">"))
    for index, message in enumerate(simulation.in_flight):
        if (message.sender, message.receiver) == (sender, receiver):
            return index
    raise ValueError(f"nothing is on its way {route}")


def show(simulation: Simulation, say: Callable[[str], None]) -> None:
    """Say what every node is and has."""
    say(f"at {simulation.now:.0f} ms")
    for node_id, node in sorted(simulation.nodes.items()):
        if node.core is None:
            say(f"{node_id} is down, log {node.disk.start} to {node.disk.end}")
            continue
        role, log = node.core.role, node.core.log
        say(
            f"{node_id} is {role.name.value} in epoch {role.epoch}, "
            f"log {log.start_offset} to {log.end_offset} (durable {log.durable_end_offset}), "
            f"committed {node.core.high_watermark}"
        )
