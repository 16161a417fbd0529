"""From files of checkpoints to what can be resumed from."""
