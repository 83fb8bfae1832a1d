"""Hooks that keep what they are given, and hooks that pile up."""
