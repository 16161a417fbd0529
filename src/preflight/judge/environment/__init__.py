"""Variables of the environment, judged by checks/data/env_vars.yaml and by what the host has."""
