"""The command line: one module a family of commands, each a thin edge over the store or a child process.

A bare `rlgpt` never imports this folder. Everything printed passes the sanitiser; `--json` prints stable keys
(docs/json.md); errors are `Failure`s, turned into one sentence and an exit code in `console/cli.py`.
"""
