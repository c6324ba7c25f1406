"""The action host: the locked-down process for generated code. `api` is its border."""
