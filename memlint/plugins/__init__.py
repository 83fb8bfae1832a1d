"""Plugins of other tools: flake8, IPython, pytest, validate-pyproject."""
