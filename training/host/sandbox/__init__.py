"""The hostile side of the action host: everything that runs inside the locked process with generated code.

Imports `host.wire`, `host.spin_wait` and the standard library, nothing else.
"""
