"""Runs the connector example of docs/spark/functions.md on a broker; a program of its own.

    python -m tests.interop.clients.spark_functions_reader SERVERS JARS PAGE

Prints one JSON object: what the example's query finds, and every record of __transaction_state,
decoded. Spark starts a Java process with the jars in the folder.
"""

import json
import re
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.interop.clients.spark_programs import session_with_jars

from kvorum.spark.functions import transaction_state_record

EXAMPLE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PLACEHOLDER = "localhost:9092"
SHOWN = ".show()\n"


def committed_offsets(session: SparkSession, page: str, servers: str) -> list[list[Any]]:
    """Return the rows that the page's first example shows."""
    found = EXAMPLE.search(page)
    assert found is not None
    code = found[1]
    assert code.endswith(SHOWN)
    assert PLACEHOLDER in code
    code = code.removesuffix(SHOWN).replace(PLACEHOLDER, servers)
    # Its last statement is the query: the name takes what the page shows.
    head, query, tail = code.rpartition("spark.sql(")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "example.py")
        program.write_text(f"{head}shown = {query}{tail}", encoding="utf-8")
        names = runpy.run_path(str(program), init_globals={"spark": session})
    return [list(row) for row in names["shown"].collect()]


def transactions(session: SparkSession, servers: str) -> list[dict[str, Any]]:
    """Return the records of __transaction_state, in their order."""
    stored = (
        session.read.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "__transaction_state")
        .option("startingOffsets", "earliest")
        .load()
    )
    record = transaction_state_record("key", "value").alias("record")
    rows = stored.select("partition", "offset", record).orderBy("partition", "offset")
    return [
        row["record"].asDict()
        for row in rows.selectExpr(
            "named_struct('id', record.transactional_id, 'producer_id', record.producer_id, "
            "'status', record.transaction_status, 'error', record.error, "
            "'partitions', to_json(record.transaction_partitions)) AS record"
        ).collect()
    ]


def main(servers: str, jars: str, page: str) -> None:
    """Run both queries."""
    session = session_with_jars(jars)
    session.conf.set("spark.sql.shuffle.partitions", "1")
    text = Path(page).read_text(encoding="utf-8")
    found = {
        "offsets": committed_offsets(session, text, servers),
        "transactions": transactions(session, servers),
    }
    session.stop()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
