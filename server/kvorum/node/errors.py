"""What can go wrong with a node as a whole, and with one request to it.

::

    NodeError                       one line for the operator
    ├── NodeStartError              the node cannot start: what, where, and what to do
    └── NodeFailedError             the node had to stop: its log or disk failed
    CloseConnectionError            a client sent what only the end of its connection answers
    NotControllerError              the controller asked is not the active one (41)
"""

from __future__ import annotations


class NodeError(Exception):
    """The base of what ends a node; the text is one line for the operator."""


class NodeStartError(NodeError):
    """The node cannot start like this."""


class NodeFailedError(NodeError):
    """The node ran and cannot go on."""


class CloseConnectionError(Exception):
    """A request that is answered by closing the connection; the text says why."""


class NotControllerError(Exception):
    """The controller asked is not the active one; the text is what Kafka tells the client."""
