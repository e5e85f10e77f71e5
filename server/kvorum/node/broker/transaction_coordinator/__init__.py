"""The transaction coordinator of a broker, on the runtime of all coordinators.

The service hands requests to the shards of `kvorum.transactions`; when an outcome is committed, the
marker channel manager has it written to every partition of the transaction.
"""
