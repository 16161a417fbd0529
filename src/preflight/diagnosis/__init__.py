"""Why a run is slow or stands still, from whatever is at hand."""
