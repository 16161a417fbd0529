"""Where a step goes and how a series runs, as pictures: from `picture` of an entry of a report's
`measurements`, so that a stored report is drawn the same."""
