"""Batches, data sets and replicas that stay in memory."""
