"""The broker role: its life towards the controller, and its answers from the image."""
