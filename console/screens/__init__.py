"""One module a screen: composition and actions. What is shown comes from `view`, what is typed from `keymap`."""
