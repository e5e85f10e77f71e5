"""The Spark data source ``kvorum-metadata``: the records of Kafka's metadata logs as a table.

`source` is what Spark calls; `columns`, `filters` and `query` are what a query may ask for;
`range_rows` makes Arrow batches of a range of a file, `decoded_rows` a row of each record.
"""
