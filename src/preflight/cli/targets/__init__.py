"""What a diagnosis is given: files, folders, processes; which kind each is, and who reads it."""
