"""How the devices of a host are joined: NVLink domains, near adapters, peer access."""
