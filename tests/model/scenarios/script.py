"""The little language of the scenario files, and how they are run.

A file is a list of steps, each a command, a line of dashes, the trace it left, and an empty line.
Lines before a command that begin with ``#`` say what it is about. Commands:

    bring up 1 2 3        make and start voters with empty disks; the configuration names them
    form 1 2 3            make and start voters whose disks name the voters (kraft.version 1)
    controller 4          make and start a node that may become a voter
    observer 4            make and start an observer
    old 2                 from now on the node does not know pre-votes
    advance 1500          let milliseconds pass; messages stay on their way
    settle                deliver everything, and make everything durable, until nothing moves
    run 3000              let milliseconds pass and settle, in steps of 10; fetches that bring
                          nothing are left out of the trace
    deliver 1>2           deliver the first message on its way from 1 to 2
    drop 1>2              lose it
    cut 1 / heal 1        let a node reach no other / all that can be reached
    propose 1 3           propose records to a node
    hold 1 / release 1    do not make a node's log durable by itself / do so again
    flush 1               make it durable once
    crash 1 / start 1     stop a node with the loss of what is not durable / start it again
    wipe 1 9              give a node that is down an empty disk, with the directory id 9
    upgrade 1 1           ask a node for a kraft.version
    joins                 from now on, controllers that start ask by themselves to become voters
    ask 2 vote ...        put a request to a node from outside (see `asking`)
    want 1 4 5 6          propose to a node that the voters be others; without any: cancel that
    step                  let milliseconds pass until a leader takes a step towards such voters;
                          what it sends and writes is then still under way (``run`` takes steps too)
    snapshot 1            let a node take a snapshot of what is committed and drop the log before
    resign 1 / shutdown 1 ask a leader to go
    show                  say what every node is and has

Where a node is named, ``leader`` is the one that leads then.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.model.scenarios.requests_from_outside import parse_request
from tests.model.scenarios.simulation import Simulation

STEP_MS = 10
STEP_WAIT_MS = 10_000


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
        is_long = step.command.startswith(("run", "step"))
        told = [line for line in trace if not (is_long and is_routine(line))]
        done.append(Step(step.about, step.command, told))
    return done


def is_routine(line: str) -> bool:
    """Tell whether a line is about a fetch that brought nothing, of which there are too many."""
    return "fetches from" in line or "answers the fetch (0 records" in line


@dataclass(frozen=True)
class Command:
    """A line's words after the verb, and what they are about."""

    simulation: Simulation
    words: list[str]
    say: Callable[[str], None]

    @property
    def node(self) -> int:
        """The node that is named first; `leader` is whichever leads the highest epoch."""
        word = self.words[0]
        return self.simulation.leader_id() if word == "leader" else int(word)


def execute(simulation: Simulation, line: str, say: Callable[[str], None]) -> None:
    """Do what one line says."""
    verb, *words = line.removeprefix("bring ").split()
    command = Command(simulation, words, say)
    if verb in QUORUM_VERBS:
        QUORUM_VERBS[verb](command)
    elif verb in NODE_VERBS and len(words) == 1:
        NODE_VERBS[verb](simulation, command.node)
    else:
        raise ValueError(f"no such command: {line}")


def propose(command: Command) -> None:
    """Propose as many records as the line says."""
    command.simulation.propose(command.node, [f"record {i}" for i in range(int(command.words[1]))])


def deliver(command: Command) -> None:
    """Deliver the first message on a route."""
    command.simulation.deliver(find(command.simulation, command.words[0]))


def drop(command: Command) -> None:
    """Lose the first message on a route."""
    command.simulation.drop(find(command.simulation, command.words[0]))


def ask(command: Command) -> None:
    """Put a request to a node."""
    _, kind, *fields = command.words
    command.simulation.ask(command.node, parse_request(kind, fields))


QUORUM_VERBS: Mapping[str, Callable[[Command], None]] = {
    "up": lambda command: command.simulation.bring_up(map(int, command.words)),
    "form": lambda command: command.simulation.bring_up_formatted(map(int, command.words)),
    "advance": lambda command: command.simulation.advance(float(command.words[0])),
    "settle": lambda command: command.simulation.settle(),
    "run": lambda command: run_for(command.simulation, int(command.words[0])),
    "deliver": deliver,
    "drop": drop,
    "propose": propose,
    "want": lambda command: command.simulation.want(command.node, ",".join(command.words[1:])),
    "step": lambda command: take_step(command.simulation),
    "wipe": lambda command: command.simulation.wipe(command.node, int(command.words[1])),
    "upgrade": lambda command: command.simulation.upgrade(command.node, int(command.words[1])),
    "joins": lambda command: command.simulation.let_join(),
    "ask": ask,
    "show": lambda command: show(command.simulation, command.say),
}
NODE_VERBS: Mapping[str, Callable[[Simulation, int], None]] = {
    "observer": Simulation.add_observer,
    "controller": Simulation.add_controller,
    "old": Simulation.make_old,
    "cut": Simulation.cut_off,
    "heal": Simulation.heal,
    "hold": Simulation.hold,
    "release": Simulation.release,
    "flush": Simulation.flush,
    "crash": Simulation.crash,
    "start": Simulation.start,
    "snapshot": Simulation.make_snapshot,
    "resign": Simulation.resign,
    "shutdown": Simulation.shut_down,
}


def run_for(simulation: Simulation, duration_ms: int) -> None:
    """Let time pass in small steps, everything being delivered in each."""
    for _ in range(duration_ms // STEP_MS):
        simulation.settle()
        simulation.take_steps()
        simulation.advance(STEP_MS)
    simulation.settle()


def take_step(simulation: Simulation) -> None:
    """Let time pass in small steps, until a leader takes one towards the target voters."""
    for _ in range(STEP_WAIT_MS // STEP_MS):
        simulation.settle()
        if simulation.take_steps():
            return
        simulation.advance(STEP_MS)
    raise ValueError("nobody takes a step")


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


def stir(simulation: Simulation, random: Random) -> None:
    """Do one random thing to a cluster."""
    node_id = random.choice(sorted(simulation.nodes))
    node = simulation.nodes[node_id]
    chance = random.random()
    if chance < 0.55 and simulation.in_flight:
        simulation.deliver(random.randrange(len(simulation.in_flight)))
    elif chance < 0.60 and simulation.in_flight:
        simulation.drop(random.randrange(len(simulation.in_flight)))
    elif chance < 0.72:
        simulation.flush(node_id)
    elif chance < 0.82:
        simulation.advance(random.choice([1, 20, 100, 700]))
    elif chance < 0.91:
        simulation.propose(node_id, [f"{random.random()}"] * random.randint(1, 3))
    elif chance < 0.93:
        simulation.make_snapshot(node_id)
    elif chance < 0.96:
        simulation.cut ^= {node_id}
    elif node.core is None:
        simulation.start(node_id)
    elif chance < 0.98:
        simulation.crash(node_id)


TRACES_FOLDER = Path(__file__).parent / "traces"


TRACE_FILES = sorted(TRACES_FOLDER.glob("*.txt"))
