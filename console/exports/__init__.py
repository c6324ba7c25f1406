"""A session in other people's formats: rows as JSONL or CSV, curves for TensorBoard, one HTML report.

Everything is made from a reader's rows and written once; nothing here can be imported back (bundles can).
"""
