"""PyTorch: one wrapped optimizer, and a training loop stays as it is.

    with rubato.init() as session:
        optimizer = rubato.torch.DistributedOptimizer(torch.optim.Adam(model.parameters()), model)
        for x, y in rubato.torch.batches(loader, optimizer):
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
"""

from rubato.torch.broadcast import broadcast_parameters, sync_buffers
from rubato.torch.data import LeasedSampler, batches
from rubato.torch.embedding_bag import EmbeddingBag
from rubato.torch.optimizer import DistributedOptimizer

__all__ = [
    "DistributedOptimizer",
    "EmbeddingBag",
    "LeasedSampler",
    "batches",
    "broadcast_parameters",
    "sync_buffers",
]
