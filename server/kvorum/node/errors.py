"""The errors of a node as a whole, and those of one request to it.

::

    NodeError                       the node does not run; one line for the operator
    ├── NodeStartError              the node cannot start: cause, place and remedy
    └── NodeFailedError             the node had to stop: its log or disk failed
    CloseConnectionError            a request that no response can answer: the connection is closed
    NotControllerError              the controller is not the active one (41)
"""


class NodeError(Exception):
    """The base of the errors that end a node; the text is one line for the operator."""


class NodeStartError(NodeError):
    """The node cannot start with this configuration or in this environment."""


class NodeFailedError(NodeError):
    """The node ran and cannot continue."""


class CloseConnectionError(Exception):
    """A request that is answered by closing the connection; the text contains the reason."""


class NotControllerError(Exception):
    """The controller is not the active one; the text is that of Kafka's response."""


class FormatError(ValueError):
    """Directories cannot be formatted as requested; the text is Kafka's own, on one line."""
