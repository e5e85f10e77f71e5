"""The dead-letter queues of share groups (KIP-1191), pure: their topics, records and requests.

A record that a member rejects, or that was delivered too often, is written to the topic that its
group names, and archived then. `kvorum.node.broker.dead_letter_queue` does so.
"""
