"""`python -m preflight.payload COMMAND`, as in the .pyz."""

from .main import main

main()
