"""The programs beside this one that run Spark with the jars in a folder."""

import os
from pathlib import Path

from pyspark.sql import SparkSession
from tests.support.node_process import run_python

from kvorum.spark.session import build_session


def run_spark_program(name: str, *arguments: str | Path) -> str:
    """Run a program to its end, in a process of its own; return what it prints."""
    module = f"tests.interop.clients.{name}"
    done = run_python("-m", module, *map(str, arguments))
    assert done.returncode == 0, done.stderr[-5000:]
    return done.stdout


def session_with_jars(folder: str) -> SparkSession:
    """Start the session of such a program, and the Java process after it."""
    jars = ",".join(str(jar) for jar in sorted(Path(folder).glob("*.jar")))
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {jars} pyspark-shell"
    return build_session(master="local[1]")
