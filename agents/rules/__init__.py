"""The rule-based model: a deterministic function of a request's bytes that stands in for a language model.

It is no language model and is never called one. It speaks Chat Completions, so that the whole way of a request is
the real one, and knows nothing but what stands in the request: world sheet, script book, plan, measurements.
"""
