"""The runner of Kafka's tools tells how they ended and what they printed, as a shell would."""

from typing import Final

from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import Node
from tests.support.waiting import wait_for

AFTERWARDS: Final = 20
"""The number of tools that are run after one whose thread goes on."""


def test_output_and_exit_code_of_a_tool_that_succeeds(kafka_tools: ToolRunner) -> None:
    result = kafka_tools.run("kafka-storage", "random-uuid")
    assert result.exit_code == 0
    assert len(result.stdout.strip()) == 22
    assert result.stderr == ""


def test_each_run_starts_with_nothing_printed(kafka_tools: ToolRunner) -> None:
    first = kafka_tools.run("kafka-storage", "random-uuid").stdout
    second = kafka_tools.run("kafka-storage", "random-uuid").stdout
    assert len(second.strip()) == 22
    assert second != first


def test_the_exit_code_of_a_tool_that_refuses_its_arguments(kafka_tools: ToolRunner) -> None:
    result = kafka_tools.run("kafka-topics", "--list")
    assert result.exit_code == 1
    assert "bootstrap-server" in result.stderr


def test_a_tool_says_nothing_after_its_end(java: Java) -> None:
    with ToolRunner(java) as runner:
        assert runner.run("LateWords").stderr.startswith("in time\n")
        said = [runner.run("kafka-storage", "random-uuid").stderr for _ in range(AFTERWARDS)]
    assert said == [""] * AFTERWARDS


def test_a_class_that_is_not_there_fails(kafka_tools: ToolRunner) -> None:
    result = kafka_tools.run("org.example.Missing")
    assert result.exit_code == 1
    assert "ClassNotFoundException" in result.stderr


def test_a_tool_talks_to_a_real_node(kafka_tools: ToolRunner, real_kafka: Node) -> None:
    bootstrap = ["--bootstrap-server", real_kafka.address]
    made = kafka_tools.run("kafka-topics", *bootstrap, "--create", "--topic", "runner-sees")
    assert made.stdout == "Created topic runner-sees.\n"
    assert made.exit_code == 0

    def is_listed() -> bool:
        listed = kafka_tools.run("kafka-topics", *bootstrap, "--list")
        return "runner-sees" in listed.stdout.splitlines()

    # The controller has answered; the node's broker reads of the topic a moment later.
    wait_for(is_listed, "the broker knows the topic")
