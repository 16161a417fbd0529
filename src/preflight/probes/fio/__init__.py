"""What fio wrote as JSON, as facts."""
