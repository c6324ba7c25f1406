"""Servers that speak Chat Completions each in their own way, answered by the rule-based model.

Every dialect takes, refuses and shapes what its documentation, or an error that its users reported, says; the source
stands beside it. `serve(name)` is a ChatServer in that dialect. Tokens are counted as four bytes each.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.agents.chat_server import ChatServer
from tests.agents.dialects.dialect import Dialect
from tests.agents.dialects.hosted import Anthropic, Azure, DeepSeek, Gemini, Mistral, OpenRouter, OSeries, Responses
from tests.agents.dialects.local_servers import LlamaCpp, LlamaCppPython, LmStudio, Ollama, Tgi, Vllm

DIALECTS: dict[str, Callable[[], Dialect]] = {
    "openai": Dialect,
    "vllm": Vllm,
    "llamacpp": LlamaCpp,
    "llama-cpp-python": LlamaCppPython,
    "ollama": Ollama,
    "lmstudio": LmStudio,
    "tgi": Tgi,
    "mistral": Mistral,
    "deepseek": DeepSeek,
    "anthropic": Anthropic,
    "gemini": Gemini,
    "openrouter": OpenRouter,
    "azure": Azure,
    "o-series": OSeries,
    "responses": Responses,
}


def serve(name: str) -> ChatServer:
    return ChatServer(DIALECTS[name]())
