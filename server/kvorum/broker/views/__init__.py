"""Responses that a broker makes from its metadata image, without the controller."""
