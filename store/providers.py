"""Names of the presets for well-known servers (`agents/providers.py` says what each is). Standard library only."""

from __future__ import annotations

from typing import Literal, get_args

ProviderName = Literal[
    "openai", "azure", "openrouter", "anthropic", "gemini", "mistral", "deepseek", "vllm", "ollama", "llamacpp",
    "lmstudio",
]  # fmt: skip
NAMES: tuple[ProviderName, ...] = get_args(ProviderName)
