"""Pure: what a pane shows at a moment, as lines of styled spans. Imports no terminal library and does no I/O."""
