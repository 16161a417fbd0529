"""Traces of profilers and timelines of pipelines, read in bounded memory."""
