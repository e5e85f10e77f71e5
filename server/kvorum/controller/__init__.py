"""The decisions of the active controller: from a request and an image to records and a response."""
