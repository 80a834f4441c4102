/* A linear regression that two workers train together on data of their own, in C.
 *
 *   linear_regression HOST:PORT RANK [SIDECAR]
 *
 * with the coordinator's address, once with rank 0 and once with rank 1 (docs/clients.md shows how the job is started).
 * Both learn y = 3 a - 2 b + 0.5, which neither could know of its own examples alone. */
#include <stdio.h>
#include <stdlib.h>

#include "client/rubato_client.h"

enum { kSteps = 300, kBatch = 64 };

/* Pseudo-random numbers in [-1, 1), other ones on each worker. */
static float draw(unsigned* state) {
  *state = *state * 1664525u + 1013904223u;
  return (float)(*state >> 8) / (float)(1u << 23) - 1.0f;
}

/* The gradient of the mean squared error over a batch; returns the sum of its losses. */
static double compute(unsigned rank, unsigned* state, const float* weight, const float* bias, float* weight_gradient,
                      float* bias_gradient) {
  double loss = 0;
  weight_gradient[0] = weight_gradient[1] = bias_gradient[0] = 0;
  for (int i = 0; i < kBatch; ++i) {
    /* Worker 0 sees nothing of b, and worker 1 nothing of a. */
    const float a = rank == 0 ? draw(state) : 0.0f;
    const float b = rank == 0 ? 0.0f : draw(state);
    const float error = weight[0] * a + weight[1] * b + bias[0] - (3.0f * a - 2.0f * b + 0.5f);
    loss += error * error;
    weight_gradient[0] += 2.0f * error * a / kBatch;
    weight_gradient[1] += 2.0f * error * b / kBatch;
    bias_gradient[0] += 2.0f * error / kBatch;
  }
  return loss;
}

static int train(rubato_client* client, unsigned rank) {
  unsigned random = rank + 1;
  rubato_step step;
  rubato_result result = RUBATO_AGAIN;
  for (;;) {
    result = rubato_begin(client, &step, 1.0);
    if (result == RUBATO_AGAIN) continue;
    if (result != RUBATO_OK || step.step >= kSteps) break;
    const double loss = compute(rank, &random, rubato_weights(client, 0), rubato_weights(client, 1),
                                rubato_gradient(client, 0), rubato_gradient(client, 1));
    if (rubato_push(client, 1, kBatch) != RUBATO_OK || rubato_push(client, 0, kBatch) != RUBATO_OK) return 0;
    rubato_report(client, kBatch, loss, -1);
    if (step.step % 100 == 0) printf("worker %u, step %lld: loss %.4f\n", rank, (long long)step.step, loss / kBatch);
  }
  if (result != RUBATO_OK && result != RUBATO_ENDED) return 0;
  const float* weight = rubato_weights(client, 0);
  printf("worker %u learned y = %.3f a + %.3f b + %.3f\n", rank, weight[0], weight[1], rubato_weights(client, 1)[0]);
  return 1;
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: %s HOST:PORT RANK [SIDECAR]\n", argv[0]);
    return 2;
  }
  const unsigned rank = (unsigned)atoi(argv[2]);
  const rubato_options options = {
      .struct_bytes = sizeof(options), .coordinator = argv[1], .rank = rank, .sidecar = argc > 3 ? argv[3] : NULL};
  rubato_client* client = NULL;
  if (rubato_open(&options, &client) != RUBATO_OK) {
    fprintf(stderr, "%s\n", rubato_error(NULL));
    return 1;
  }
  const int64_t two = 2;
  const rubato_tensor tensors[] = {{.name = "weight", .shape = &two, .dimensions = 1}, {.name = "bias"}};
  const rubato_hyperparameters group = {.learning_rate = 0.3};
  const rubato_model model = {.struct_bytes = sizeof(model),
                              .tensors = tensors,
                              .tensor_count = 2,
                              .groups = &group,
                              .group_count = 1,
                              .algorithm = RUBATO_SGD};
  /* The memory starts with zeros, which are good initial weights here. */
  if (rubato_define(client, &model) != RUBATO_OK || rubato_start(client) != RUBATO_OK || !train(client, rank)) {
    fprintf(stderr, "%s\n", rubato_error(client));
    rubato_close(client, "an error, see above");
    return 1;
  }
  return rubato_close(client, NULL) == RUBATO_OK ? 0 : 1;
}
