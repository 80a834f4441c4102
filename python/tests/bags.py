"""What tests of embedding bags share."""

import rubato
import rubato.torch
import torch


def rows_of(bag, keys):
    """As the servers have them."""
    with torch.no_grad():
        mode, bag.mode = bag.mode, None
        rows = bag(keys)
        bag.mode = mode
    return rows.clone()


def wrap(model, **options):
    parameters = list(model.parameters()) or [torch.zeros(0, requires_grad=True)]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    return rubato.torch.DistributedOptimizer(optimizer, model, **options)
