"""The Spark data source ``kvorum-log``: the records of any topic's segments as a table.

`source` is what Spark calls; `columns` and `filters` are what a query may ask for; `range_rows`
makes Arrow batches of a range of a file, run by run; `transactions` finds how each producer's
transaction ended.
"""
