"""The history of a cluster, from its metadata log: `MetadataHistory`.

Pure Python: `kvorum.spark.arrow_schemas` makes tables of the rows.
"""

from kvorum.history.intervals import LogRecord
from kvorum.history.metadata_history import MetadataHistory
from kvorum.history.tables import HISTORY_TABLES, STATE_TABLES, HistoryRow, StateRow

__all__ = [
    "HISTORY_TABLES",
    "STATE_TABLES",
    "HistoryRow",
    "LogRecord",
    "MetadataHistory",
    "StateRow",
]
