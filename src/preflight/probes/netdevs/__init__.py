"""What tools tell of network interfaces."""
