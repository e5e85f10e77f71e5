"""The Spark data source ``kvorum-log``: the records of any topic's segments as a table.

`source` is what Spark calls; `columns` are what a query may ask for; `range_rows` makes Arrow
batches of a range of a file; `transactions` finds how each producer's transaction ended.
"""
