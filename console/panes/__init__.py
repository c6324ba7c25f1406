"""One module a pane or bar of a screen: a widget around a pure view, with its keys' actions."""
