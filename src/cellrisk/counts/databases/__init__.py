"""Tables in a database: counting happens there."""
