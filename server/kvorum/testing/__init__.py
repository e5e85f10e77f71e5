"""A kvorum cluster inside a test."""
