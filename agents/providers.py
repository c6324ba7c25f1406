"""Where well-known servers are, which variable holds their key, and what they are known to take: `--provider NAME`.

A preset only saves refused requests and typing: every setting of the operator's goes first, and what a preset does
not say is learnt (agents/dialect.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Provider:
    base_url: str
    key: str = ""
    """The environment variable of its key; empty: it needs none."""
    free: bool = False
    """The operator's own machine: a token costs nothing."""
    cap: str = "max_tokens"
    """What it calls the cap on a reply."""
    formats: tuple[str, ...] = ("json_schema", "json_object", "words")
    spelled: bool = False
    """It takes a response_format and may ignore it: the schema stands in the messages too."""
    without: frozenset[str] = frozenset()
    """Parameters that it is known to refuse."""
    tells_cost: bool = False
    """`usage.cost` is what it charged, in USD."""
    tools: bool = False
    """Its models call functions, all but a few, which is learnt. Servers of the operator's own need a parser for the
    model's form of calls, so these are not asked unless the operator says so."""


PROVIDERS: dict[str, Provider] = {
    # https://platform.openai.com/docs/api-reference/chat/create
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY", cap="max_completion_tokens", tools=True),
    # https://learn.microsoft.com/azure/ai-foundry/openai/reference; the URL is the operator's own resource
    "azure": Provider("", "AZURE_OPENAI_API_KEY", cap="max_completion_tokens", tools=True),
    # https://openrouter.ai/docs/use-cases/usage-accounting
    "openrouter": Provider("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", tells_cost=True, tools=True),
    # https://docs.claude.com/en/api/openai-sdk: "response_format: ignored"
    "anthropic": Provider("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", spelled=True, tools=True),
    # https://ai.google.dev/gemini-api/docs/openai
    "gemini": Provider("https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY", tools=True),
    # https://docs.mistral.ai/api/#operation/createChatCompletion
    "mistral": Provider(
        "https://api.mistral.ai/v1", "MISTRAL_API_KEY", without=frozenset({"stream_options"}), tools=True
    ),
    # https://api-docs.deepseek.com/api/create-chat-completion: response_format is text or json_object
    "deepseek": Provider("https://api.deepseek.com", "DEEPSEEK_API_KEY", formats=("json_object", "words"), tools=True),
    # https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html
    "vllm": Provider("http://127.0.0.1:8000/v1", free=True),
    # https://docs.ollama.com/openai
    "ollama": Provider("http://127.0.0.1:11434/v1", free=True),
    # https://github.com/ggml-org/llama.cpp/tree/master/tools/server; llama-cpp-python listens on port 8000
    "llamacpp": Provider("http://127.0.0.1:8080/v1", free=True),
    # https://lmstudio.ai/docs/developer/openai-compat
    "lmstudio": Provider("http://127.0.0.1:1234/v1", free=True),
}
"""By the names of `store/providers.py`."""
_AZURE = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")


def is_azure(url: str) -> bool:
    return (urlsplit(url).hostname or "").endswith(_AZURE)


def provider_of(url: str) -> Provider | None:
    """The provider whose host the URL names; a server of the operator's own has none."""
    if is_azure(url):
        return PROVIDERS["azure"]
    host = urlsplit(url).hostname
    return next((p for p in PROVIDERS.values() if p.key and p.base_url and urlsplit(p.base_url).hostname == host), None)
