"""Names of the tables in a session's shared sequence."""

SEQUENCED = frozenset(
    {
        "session",
        "event",
        "task_plan",
        "iteration",
        "plan",
        "sub_action",
        "code_version",
        "trial",
        "rl_config",
        "training_run",
        "metric",
        "episode",
        "evaluation",
        "verdict",
        "llm_call",
        "frame",
        "checkpoint",
        "log",
    }
)
