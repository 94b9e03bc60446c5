"""Order, waiting, deciding. Deterministic; replayed in tests from recorded histories."""
