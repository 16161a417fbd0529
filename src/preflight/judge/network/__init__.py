"""Network adapters judged."""
