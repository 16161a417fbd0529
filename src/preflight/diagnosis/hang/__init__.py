"""Why a run stands still, or ended: who everybody waits for, and what is only its echo."""
