# ruff: noqa: E501  (the words of servers stand as they came)
"""What is learnt from refusals, in the words of many servers."""

from __future__ import annotations

from typing import Any

import pytest

from rlgpt.agents.refusals import Failure, asked_wait, token_limits, understood

REQUEST: dict[str, Any] = {
    "model": "m", "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}],
    "response_format": {"type": "json_schema"}, "max_tokens": 16000, "temperature": 0.0, "stream": True,
    "stream_options": {"include_usage": True}, "service_tier": "flex", "reasoning_effort": "low",
}  # fmt: skip


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        # how many tokens fit
        (400, "This model's maximum context length is 8192 tokens. However, you requested 20500 tokens (4500 in the "
              "messages, 16000 in the completion).", "tokens context=8192 prompt=4500"),
        (400, "'max_tokens' or 'max_completion_tokens' is too large: 16000. This model's maximum context length is 8192 "
              "tokens and your request has 4500 input tokens (16000 > 8192 - 4500).", "tokens context=8192 prompt=4500"),
        (400, "You passed 4501 input tokens and requested 16000 output tokens. However, the model's context length is "
              "only 8192 tokens, resulting in a maximum input length of 0 tokens.", "tokens context=8192 prompt=4501"),
        (400, "This endpoint's maximum context length is 8192 tokens. However, you requested about 20500 tokens (4500 of "
              "text input, 16000 in the output).", "tokens context=8192 prompt=4500"),
        (400, "max_tokens is too large: 16000. This model supports at most 4096 completion tokens, whereas you provided "
              "16000.", "tokens output=4096"),
        (400, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", "tokens output=8192"),
        (400, "max_tokens: 16000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-haiku",
              "tokens output=8192"),
        (400, "input length and `max_tokens` exceed context limit: 190000 + 16000 > 200000, decrease input length or "
              "`max_tokens` and try again", "tokens context=200000 prompt=190000"),
        (400, "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
              "tokens context=32768 prompt=40000"),
        (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
              "tokens context=1048576 prompt=1200000"),
        (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 1000 `inputs` tokens "
              "and 16000 `max_new_tokens`", "tokens context=4096 prompt=1000"),
        (422, "Input validation error: `max_new_tokens` must be <= 512. Given: 16000", "tokens output=512"),
        (422, "Input validation error: `inputs` must have less than 4096 tokens. Given: 4545",
              "tokens context=4096 prompt=4545"),
        (400, {"code": 400, "message": "the request exceeds the available context size, try increasing it",
               "type": "exceed_context_size_error", "n_prompt_tokens": 14429, "n_ctx": 8192},
              "tokens context=8192 prompt=14429"),
        (400, "Trying to keep the first 4500 tokens when context the overflows. However, the model is loaded with context "
              "length of only 4096 tokens, which is not enough.", "tokens context=4096"),
        (400, {"code": "InvalidParameter", "message": "<400> InternalError.Algo.InvalidParameter: Range of max_tokens should "
               "be [1, 8192]"}, "tokens output=8192"),
        (400, "Range of input length should be [1, 30720]", "tokens context=30720"),
        (400, "The decoder prompt (length 21535) is longer than the maximum model length of 16384. Make sure that "
              "`max_model_len` is no smaller than the number of text tokens.", "tokens context=16384 prompt=21535"),
        (400, "The decoder prompt (length 21535) is longer than the maximum model length of 16384.",
              "tokens context=16384 prompt=21535"),
        (400, "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of "
              "20500 tokens: 4500 tokens from the input messages and 16000 tokens for the completion.",
              "tokens context=8192 prompt=4500"),
        (400, {"message": "The parameter max_tokens specified in the request is not valid: integer above maximum value, "
               "expected a value <= 8192, but got 16000 instead.", "param": "max_tokens"}, "tokens output=8192"),
        # what is not taken
        (400, {"message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
                          "'max_completion_tokens' instead.", "param": "max_tokens"}, "rejected max_tokens"),
        (400, {"message": "Unsupported value: 'temperature' does not support 0.0 with this model.",
               "param": "temperature"}, "rejected temperature"),
        (400, {"message": "Invalid schema for response_format 'CodeReply': ...", "param": "response_format"},
              "rejected response_format"),
        (400, "'response_format.type' must be 'json_schema' or 'text'", "rejected response_format"),
        (422, {"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "Extra inputs are not "
                           "permitted", "input": {"include_usage": True}}]}, "rejected stream_options"),
        (422, {"message": '{"detail":[{"type":"extra_forbidden","loc":["body","service_tier"],"msg":"Extra inputs"}]}'},
              "rejected service_tier"),
        (500, "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': \"Input should be 'text' or "
              "'json_object'\"}]", "rejected response_format"),
        (500, "Failed to convert outlines regex", "rejected response_format"),
        (400, "The provided JSON schema contains features not supported by xgrammar.", "rejected response_format"),
        (400, "failed to parse grammar", "rejected response_format"),
        (404, "No endpoints found that support structured outputs", "rejected response_format"),
        (400, "streaming is not available for this deployment", "rejected stream"),
        (400, "Unrecognized request argument supplied: reasoning_effort", "rejected reasoning_effort"),
        (400, "Unknown parameter: 'service_tier'.", "rejected service_tier"),
        (500, "System role not supported", "rejected system"),
        (400, "Conversation roles must alternate user/assistant/user/assistant/...", "rejected system"),
        (404, "This model is only supported in v1/responses and not in v1/chat/completions.", "rejected chat"),
        # what may pass, and what will not
        (404, "The model `gpt-9` does not exist or you do not have access to it.", "404"),
        (404, 'model "llama9" not found, try pulling it first', "404"),
        (400, {"type": "invalid_request_error", "code": "1211", "message": "[1211][模型不存在，请检查模型代码。][2026]"}, "404"),
        (404, {"object": "error", "message": "The model `x` does not exist.", "type": "NotFoundError", "param": "model",
               "code": 404}, "404"),
        (400, {"message": "The requested model 'x' does not exist.", "param": "model"}, "404"),
        (400, {"message": "'temperature' does not go with this model.", "param": "model"}, "rejected temperature"),
        (401, "Incorrect API key provided", "401"),
        (400, "Model m not found", "404"),
        (400, {"error": {"message": "Model m not found", "type": "invalid_request_error"}}, "404"),
        (422, {"message": "unknown model: m"}, "404"),
        (400, "Unknown parameter: 'service_tier' does not exist for this model.", "rejected service_tier"),
        (500, "the model was not found in memory", "500"),
        # errors with a good status
        (0, {"error": "Unexpected endpoint or method. (POST /chat/completions)"}, "404"),
        (0, {"error": "Unexpected endpoint or method. (POST /v1/responses)"}, "404"),
        (0, {"error": 'model "x" not found, try pulling it first'}, "404"),
        (0, {"error": {"message": "wrong", "code": "model_not_found"}}, "404"),
        (0, {"error": {"message": "Invalid API key provided", "code": "invalid_api_key"}}, "401"),
        (0, {"error": "the model is loading"}, "500"),
        (0, {"error": {"type": "tokens", "code": "rate_limit_exceeded", "message": "Rate limit reached for m on tokens per "
             "min (TPM): Limit 30000, Used 22999, Requested 12528. Please try again in 11.054s."}}, "429"),
        (0, {"type": "error", "error": {"type": "rate_limit_error", "message": "This request would exceed your "
             "organization's rate limit of 30,000 input tokens per minute."}}, "429"),
        (400, "Rate limit exceeded: too many tokens per minute", "429"),
        (500, {"error": {"message": "context deadline exceeded"}}, "500"),
        (500, {"error": 'Post "http://127.0.0.1:34567/completion": context canceled'}, "500"),
        (500, {"error": "llama runner process has terminated: failed to create context with model"}, "500"),
        (500, "CUDA error: out of memory, in function ggml_backend_cuda_context", "500"),
        (0, {"error": "a slot for the model was not free"}, "500"),
        (429, "Rate limit reached for tokens per min: Limit 30000, Used 29000, Requested 16000.", "429"),
        (429, "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 20000, Requested 22500. "
              "The input or output tokens must be reduced in order to run successfully.",
              "tokens context=20000 prompt=6500"),
        (413, "Request too large for model `m` in organization `o` service tier `on_demand` on tokens per minute (TPM): "
              "Limit 6,000, Requested 7,500, please reduce your message size and try again.", "tokens context=6000"),
        (429, "Request too large: Limit 30000, Requested 16000.", "429"),
        (429, {"message": "You exceeded your current quota", "code": "insufficient_quota"}, "quota"),
        (402, "Insufficient Balance", "quota"),
        (400, {"type": "invalid_request_error", "message": "Your credit balance is too low to access the Anthropic API. "
               "Please go to Plans & Billing to upgrade or purchase credits."}, "quota"),
        (400, "Budget has been exceeded! Current cost: 0.5, Max budget: 0.4", "quota"),
        (400, {"message": "Billing hard limit has been reached", "code": "billing_hard_limit_reached"}, "quota"),
        (400, {"message": "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than "
               "the `context_window` for this model", "param": "max_tokens"}, "tokens output=8192"),
        # what no waiting mends, whatever its status
        (400, [{"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.",
                          "status": "INVALID_ARGUMENT"}}], "401"),
        (400, {"code": "invalid-argument", "error": "Incorrect API key provided: xa***."}, "401"),
        (400, {"message": "Model Not Exist", "type": "invalid_request_error"}, "404"),
        (400, {"message": "foo/bar is not a valid model ID", "code": 400}, "404"),
        (503, {"message": "No available channel for model m under group default", "code": "model_not_found"}, "404"),
        (503, {"message": "当前分组 default 下对于模型 m 无可用渠道", "type": "one_api_error"}, "404"),
        (503, "no api keys available", "503"),
        (503, {"message": "Loading model", "type": "unavailable_error"}, "503"),
        (500, "Internal server error", "500"),
        (529, "Overloaded", "529"),
        (502, "<html><body>Bad gateway: max_tokens</body></html>", "502"),
        (400, {"message": "The response was filtered due to the prompt triggering Azure OpenAI's content management "
                          "policy.", "code": "content_filter", "param": "prompt"}, "filtered"),
        (400, {"message": "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
               "code": "invalid_prompt"}, "filtered"),
        (403, {"message": "Input flagged for violence", "code": 403, "metadata": {
               "reasons": ["violence"], "flagged_input": "kill the zombie, key", "provider_name": "OpenAI"}}, "filtered"),
        (403, {"message": "openai/gpt-4o requires moderation on OpenRouter. Your input was flagged for \"violence\". No "
                          "credits were charged.", "code": 403, "metadata": {"reasons": ["violence"]}}, "filtered"),
        (403, "Your account was flagged for violating our usage policies.", "403"),
        (403, {"message": "The key may not use this model", "metadata": {"flagged_input": "input flagged"}}, "403"),
        (400, {"message": "Failed to generate JSON. Please adjust your prompt. See 'failed_generation' for more details.",
               "code": "json_validate_failed", "failed_generation": "# craft tools, whole context, at most 300 tokens"},
              "rejected response_format"),
        (400, {"message": "context too long", "n_ctx": True}, "tokens"),
        (400, "Bad request", "400"),
        (400, None, "400"),
        (400, [[[[{"loc": [["body"]]}]]]], "400"),
        (400, {"param": 7, "loc": "x", "message": None}, "400"),
    ],
)  # fmt: skip
def test_the_body_says_what_is_wrong_whatever_its_shape(status: int, body: object, code: str) -> None:
    assert understood(REQUEST, status, body, "") == code


def test_a_code_survives_its_record() -> None:
    failure = Failure("tokens context=8192 prompt=4500", "no room: none at all")
    loaded = Failure.load(str(failure))
    assert (loaded.code, loaded.sentence) == (failure.code, failure.sentence) and not loaded.transient
    assert Failure.load("suspected stream: x").rejected == "stream" and Failure.load("429: x").transient


def test_numbers_in_a_record_that_no_server_means_are_not_read() -> None:
    assert token_limits(f"tokens context={10**400} prompt=4500 output=²") == {"prompt": 4500}


def test_an_endless_error_is_read_at_once() -> None:
    numbers = "too many tokens in the context: " + " ".join(str(n) for n in range(16, 400_000))
    assert understood(REQUEST, 400, numbers, "").startswith("tokens")


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Please try again in 11.054s. Visit the page", 11.054),
        ("Please try again in 20ms.", 0.02),
        ("Please try again in 1m30.5s.", 90.5),
        ("Please try again in 2h3m.", 7380.0),
        ("Please retry in 6 seconds", 6.0),
        ("Please try again in a while", None),
        ("try again in 3 parts", None),
    ],
)
def test_the_wait_that_an_error_asks_for_in_words_is_read(words: str, seconds: float | None) -> None:
    assert asked_wait({"error": {"message": words}}) == seconds
