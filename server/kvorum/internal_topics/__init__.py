"""Records of the topics that Kafka keeps for itself: groups, transactions, share groups, tiering.

The modules here turn the bytes of a record's key and value into Kafka's JSON form. They know
nothing of logs, consumers or tables.
"""
