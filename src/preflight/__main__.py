"""`python -m preflight` is `preflight`."""

from preflight.cli.app import main

if __name__ == "__main__":
    main()
