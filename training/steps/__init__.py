"""What each step of the loop does: one function a step, each ending in one transaction."""
