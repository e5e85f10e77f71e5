"""How Spark finds its Java."""

import subprocess
from pathlib import Path

from kvorum.spark.session import java_without_vector_module


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
