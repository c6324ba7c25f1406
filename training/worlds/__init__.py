"""The worlds and the protocol they share. No policy, no store."""
