"""What the active controller decides: a request and an image in, records and an answer out."""
