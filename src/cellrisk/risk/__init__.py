"""What an attacker learns from a table that is published with noise."""
