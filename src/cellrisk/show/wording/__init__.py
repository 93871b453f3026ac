"""The words of results: one module for each kind of result, which reads its fields and computes nothing."""
