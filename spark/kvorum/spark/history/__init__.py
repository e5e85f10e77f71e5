"""The history of a cluster, from its metadata log: `MetadataHistory`.

Pure Python: nothing here needs pyspark, and only `arrow_schemas` needs pyarrow.
"""

from kvorum.spark.history.intervals import LogRecord
from kvorum.spark.history.metadata_history import MetadataHistory
from kvorum.spark.history.tables import HISTORY_TABLES, STATE_TABLES, HistoryRow, StateRow

__all__ = [
    "HISTORY_TABLES",
    "STATE_TABLES",
    "HistoryRow",
    "LogRecord",
    "MetadataHistory",
    "StateRow",
]
