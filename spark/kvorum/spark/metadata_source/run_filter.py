"""Choose the records of a run that satisfy a query's conditions."""

from typing import Any

import numpy as np

from kvorum.spark.columnar.body_columns import body_columns
from kvorum.spark.columnar.field_places import Flags, Ints
from kvorum.spark.columnar.record_places import RecordRun
from kvorum.spark.conditions import ANY, Condition
from kvorum.spark.metadata_source.columns import COLUMNS
from kvorum.spark.metadata_source.filters import BODY_COLUMNS, RowFilter
from kvorum.spark.metadata_source.record_types import NUMBERS


def narrowed(records: RecordRun, row_filter: RowFilter) -> RecordRun:
    """Return the records that the conditions on headers, frames and bodies leave."""
    conditions = row_filter.conditions
    if not conditions:
        return records
    kept = conditions.get("offset", ANY).matching(records.offsets)
    kept &= conditions.get("timestamp", ANY).matching(records.timestamps)
    if row_filter.types is not None:
        numbers = [NUMBERS[name] for name in row_filter.types if name in NUMBERS]
        kept &= np.isin(records.types, numbers)
    records = records.where(kept)
    for name in BODY_COLUMNS:
        condition = conditions.get(name)
        if condition is not None and len(records.offsets):
            records = _narrowed_by_body(records, name, condition)
    return records


def _narrowed_by_body(records: RecordRun, name: str, condition: Condition) -> RecordRun:
    """Return the records whose value of one column satisfies a condition."""
    column = COLUMNS[name].body
    # No other type of record has a value, so none of them satisfies the condition.
    records = records.where(np.isin(records.types, list(column.fields)))
    if not len(records.offsets):
        return records
    (values,) = body_columns(records, [column])
    return records.where(_matching(values, condition))


def _matching(values: Any, condition: Condition) -> Flags:
    """Return which values satisfy a condition; each different one is looked at once."""
    encoded = values.dictionary_encode()
    is_match = np.array([condition.matches(value) for value in encoded.dictionary.to_pylist()])
    # Null has no place in the dictionary, and never matches.
    places: Ints = encoded.indices.fill_null(len(is_match)).to_numpy(zero_copy_only=False)
    return np.append(is_match, [False])[places].astype(np.bool_)
