"""A linear regression, in the form of Horovod's tutorial.

    rubato run -n 2 -- python simplenet.py        or: python simplenet.py

Coming from Horovod: `import horovod.torch as hvd` becomes the two imports below, and `hvd.init()` a block, or
`session = rubato.init()`. broadcast_parameters may stay; broadcast_optimizer_state goes, for that state is on the servers.
"""

import argparse

import torch

import rubato
import rubato.torch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=32)
    arguments = parser.parse_args()

    with rubato.init() as session:
        # Each worker draws examples of its own.
        torch.manual_seed(1234 + session.rank)
        true_weights = torch.tensor([[2.0], [-3.4], [0.5], [1.0]])
        true_bias = 4.2

        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        optimizer = rubato.torch.DistributedOptimizer(optimizer, model)
        rubato.torch.broadcast_parameters(model.state_dict(), root=0)

        for step in range(arguments.steps):
            x = torch.randn(arguments.batch, 4)
            y = x @ true_weights + true_bias + 0.01 * torch.randn(arguments.batch, 1)
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x), y)
            session.log({"loss": loss.item()}, examples=arguments.batch)
            loss.backward()
            optimizer.step()
            if session.rank == 0 and (step + 1) % 100 == 0:
                print(f"step {step + 1}: loss {loss.item():.5f}", flush=True)

        if session.rank == 0:
            error = (model.weight.detach().T - true_weights).abs().max().item()
            print(
                f"largest error of a weight {error:.4f}, bias {model.bias.item():.3f}", flush=True
            )


if __name__ == "__main__":
    main()
