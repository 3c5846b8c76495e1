"""Tests with real peers: clients, suites and loads of others, against a real server. Run by `make test-peers`."""
