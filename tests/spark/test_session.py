"""Spark finds its Java, and its executors find the driver."""

import subprocess
from pathlib import Path

import pytest

from kvorum.spark.session import java_without_vector_module, session_settings


def test_the_wrapped_java_gets_every_argument_but_the_one_it_cannot_take(tmp_path: Path) -> None:
    java = tmp_path / "with space" / "java"
    java.parent.mkdir()
    java.write_text('#!/bin/sh\nfor argument do echo "<$argument>"; done\nexit 3\n')
    java.chmod(0o700)
    home = java_without_vector_module(java)
    arguments = ["-Dx=a b", "--add-modules=jdk.incubator.vector", "", "-cp", "*"]
    done = subprocess.run(
        [home / "bin" / "java", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert done.stdout.splitlines() == ["<-Dx=a b>", "<>", "<-cp>", "<*>"]


def address(master: str, driver_host: str | None = None) -> dict[str, str]:
    settings = session_settings(master=master, driver_memory="1g", driver_host=driver_host)
    keys = ("spark.driver.host", "spark.driver.bindAddress")
    return {key: settings[key] for key in keys if key in settings}


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2,1]", "local-cluster[2,1,1024]"])
def test_with_a_local_master_nothing_is_reachable_from_elsewhere(master: str) -> None:
    assert set(address(master).values()) == {"127.0.0.1"}


@pytest.mark.parametrize(
    "master", ["spark://one:7077", "yarn", "k8s://https://one:6443", "locally"]
)
def test_executors_of_other_machines_reach_the_driver(master: str) -> None:
    assert address(master) == {}
    assert address(master, "gateway") == {
        "spark.driver.host": "gateway",
        "spark.driver.bindAddress": "0.0.0.0",
    }


@pytest.mark.parametrize("is_without_rows", [True, False])
def test_java_is_compiled_thoroughly_only_where_it_works_on_rows(*, is_without_rows: bool) -> None:
    settings = session_settings(
        master="spark://one:7077",
        driver_memory="1g",
        driver_host=None,
        is_without_rows=is_without_rows,
    )
    for role in ("driver", "executor"):
        options = settings.get(f"spark.{role}.extraJavaOptions", "").split()
        assert ("-XX:TieredStopAtLevel=1" in options) is is_without_rows
