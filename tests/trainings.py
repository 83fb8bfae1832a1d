"""A training loop for programs of tests."""

from __future__ import annotations

#: the expression that each iteration adds to a sum is filled in
SUMMED = """

def train(model, loader, optimizer, criterion):
    total = 0
    for x, y in loader:
        loss = criterion(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += {}
    return total
"""
