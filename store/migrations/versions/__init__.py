"""One file a released revision, in order."""
