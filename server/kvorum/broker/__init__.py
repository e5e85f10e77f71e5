"""The broker role: its lifecycle towards the controller, and its responses from the image."""
