"""Share sessions of a broker (KIP-932): the partitions of a member, from fetch to fetch."""
