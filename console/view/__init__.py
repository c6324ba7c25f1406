"""Pure functions from a moment of a session to what a pane shows: lines of styled spans. No terminal library, no
I/O."""
