"""The report: pages of HTML, without external assets, from the tables of a cluster's history.

Nothing here needs a Spark session: the tables' files are read with pyarrow, column by column and
one cluster at a time.

| modules | what they do |
|---|---|
| `tables_directory` | find and read the tables |
| `rows`, `conditions` | columns as arrays, and conditions by which reading skips rows |
| `time_window` | times and intervals as numbers |
| `availability`, `brokers`, `quorum`, `value_history`, `events` … | facts of one kind |
| `cluster_report` | all facts of one cluster |
| `markup`, `parts`, `charts`, `sections` | facts as HTML |
| `written_report` | pages, and these as files |
"""
