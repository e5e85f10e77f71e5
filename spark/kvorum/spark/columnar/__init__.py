"""Columns of many metadata records at once, read from their bytes with numpy.

A log of millions of records is read for a few of its fields. Decoding every record to an object
costs more than ten times what finding those fields costs, so the fields are found for all records
of a run of batches in one go, led by the same schemas (`Message.FIELDS`) that the codecs are
generated from. Whatever is unusual is left to the codecs: they decode it, or say what is wrong.
"""
