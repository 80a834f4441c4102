"""The servers' optimizers in NumPy: what librubato_client's other side does with gradients, for tests without it."""

from __future__ import annotations

import numpy as np


class FakeOptimizer:
    """The state of one tensor, updated in place."""

    def __init__(self, algorithm, weights, initial_accumulator):
        self.algorithm = algorithm
        self.weights = weights
        self.updates = 0
        self.first = np.zeros_like(weights)
        self.second = np.full_like(weights, initial_accumulator)

    def apply(self, gradient, values, scale):
        """One update. `values`: those of rubato_hyperparameters."""
        self.updates += 1
        getattr(self, f"_{self.algorithm}")(
            gradient, values, np.float32(values["learning_rate"] * scale)
        )

    def _decayed(self, gradient, values):
        return gradient + np.float32(values["weight_decay"]) * self.weights

    def _mean(self, gradient, values, lr):
        self.weights[...] = gradient

    def _sgd(self, gradient, values, lr):
        self.weights -= lr * self._decayed(gradient, values)

    def _momentum(self, gradient, values, lr):
        self.first[...] = np.float32(values["momentum"]) * self.first + self._decayed(
            gradient, values
        )
        self.weights -= lr * self.first

    def _nesterov(self, gradient, values, lr):
        momentum = np.float32(values["momentum"])
        gradient = self._decayed(gradient, values)
        self.first[...] = momentum * self.first + gradient
        self.weights -= lr * (gradient + momentum * self.first)

    def _adagrad(self, gradient, values, lr):
        gradient = self._decayed(gradient, values)
        self.second += gradient * gradient
        self.weights -= lr * gradient / (np.sqrt(self.second) + np.float32(values["epsilon"]))

    def _rmsprop(self, gradient, values, lr):
        rho = np.float32(values["rho"])
        gradient = self._decayed(gradient, values)
        self.second[...] = rho * self.second + (1 - rho) * gradient * gradient
        self.weights -= lr * gradient / (np.sqrt(self.second) + np.float32(values["epsilon"]))

    def _adam(self, gradient, values, lr):
        self._adam_step(self._decayed(gradient, values), values, lr)

    def _adamw(self, gradient, values, lr):
        self.weights *= 1 - lr * np.float32(values["weight_decay"])
        self._adam_step(gradient, values, lr)

    def _adam_step(self, gradient, values, lr):
        beta1, beta2 = values["beta1"], values["beta2"]
        self.first[...] = np.float32(beta1) * self.first + np.float32(1 - beta1) * gradient
        self.second[...] = (
            np.float32(beta2) * self.second + np.float32(1 - beta2) * gradient * gradient
        )
        corrected = np.sqrt(self.second) / np.float32(np.sqrt(1 - beta2**self.updates))
        step = np.float32(lr / (1 - beta1**self.updates))
        self.weights -= step * self.first / (corrected + np.float32(values["epsilon"]))


def weighted_mean(parts):
    """Of (gradient, examples), in the order of the members."""
    total = sum(examples for _, examples in parts)
    result = None
    for gradient, examples in parts:
        part = gradient * np.float32(examples)
        result = part if result is None else result + part
    return result / np.float32(total)
