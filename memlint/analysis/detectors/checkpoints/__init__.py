"""Checkpoints and copies of models beside the model on its device."""
