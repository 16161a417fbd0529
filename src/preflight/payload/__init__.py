"""What runs on a target, this machine included; shipped as one .pyz (see preflight.ship).

Needs Python 3.9 and its standard library; imports nothing else of preflight. Writes JSON lines.
"""
