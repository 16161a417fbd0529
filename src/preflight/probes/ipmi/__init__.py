"""Sensors and event log of the management controller."""
