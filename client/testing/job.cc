#include "client/testing/job.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace rubato::client {

void Fail(const std::string& why) {
  std::fprintf(stderr, "FAILED: %s\n", why.c_str());
  std::exit(1);
}

void Say(const char* what, int64_t number) {
  std::printf("%s %lld\n", what, static_cast<long long>(number));
  std::fflush(stdout);
}

void Job::Expect(rubato_result expected, rubato_result result, const char* what) const {
  if (result == expected) return;
  Fail(std::string(what) + ": " + std::to_string(result) + " instead of " + std::to_string(expected) + ": " +
       rubato_error(client));
}

void Job::Open() {
  rubato_options options = {};
  options.struct_bytes = sizeof(options);
  options.coordinator = coordinator;
  options.rank = rank;
  options.sidecar = sidecar;
  options.timeout_seconds = 20;
  Expect(RUBATO_OK, rubato_open(&options, &client), "rubato_open");
}

rubato_result Job::Define(rubato_algorithm algorithm, double rate, int64_t small, int64_t leased) {
  const rubato_tensor tensors[] = {{"small", &small, 1, 0}, {"large", &kLarge, 1, 1}};
  rubato_hyperparameters groups[2] = {};
  groups[0].learning_rate = groups[1].learning_rate = rate;
  rubato_model model = {};
  model.struct_bytes = sizeof(model);
  model.tensors = tensors;
  model.tensor_count = 2;
  model.groups = groups;
  model.group_count = 2;
  model.algorithm = algorithm;
  model.leased_examples = leased;
  model.shard_examples = leased > 0 ? 40 : 0;
  model.epochs = leased > 0 ? 2 : 0;
  model.keep_weights = keeps ? 1 : 0;
  return rubato_define(client, &model);
}

void Job::Start() { Expect(RUBATO_OK, rubato_start(client), "rubato_start"); }

rubato_result Job::Repeat(const char* what, const std::function<rubato_result()>& call) const {
  for (int seconds = 0; seconds < 60; ++seconds) {
    const rubato_result result = call();
    if (result != RUBATO_AGAIN) return result;
  }
  Fail(std::string(what) + " has not returned within 60 s");
}

std::vector<float> Job::Weights(uint32_t tensor) const {
  const float* const weights = rubato_weights(client, tensor);
  return {weights, weights + (tensor == 0 ? kSmall : kLarge)};
}

void Job::ExpectHas(uint32_t tensor, int expected) const {
  int has = -1;
  const rubato_result asked =
      Repeat("rubato_has_weights", [&] { return rubato_has_weights(client, tensor, &has, 1.0); });
  // The job may be over at any time.
  if (asked == RUBATO_ENDED) return;
  Expect(RUBATO_OK, asked, "rubato_has_weights");
  if (has != expected) Fail("rubato_has_weights of tensor " + std::to_string(tensor) + " says " + std::to_string(has));
}

rubato_result Job::BeginKept(rubato_step* step) {
  for (uint32_t tensor : {0u, 1u}) {
    const size_t bytes = kept[tensor].size() * sizeof(float);
    if (std::memcmp(kept[tensor].data(), rubato_weights(client, tensor), bytes) != 0) {
      Fail("weights of tensor " + std::to_string(tensor) + " have changed before rubato_begin");
    }
  }
  const rubato_result begun = Repeat("rubato_begin", [&] { return rubato_begin(client, step, 1.0); });
  if (begun != RUBATO_OK) return begun;
  for (uint32_t tensor : {0u, 1u}) {
    kept[tensor] = Weights(tensor);
    ExpectHas(tensor, 1);
  }
  Expect(RUBATO_INVALID, rubato_await(client, 0, 0), "rubato_await with keep_weights");
  return begun;
}

rubato_result Job::Begin(rubato_step* step) {
  if (keeps) return BeginKept(step);
  const auto begin = [&] { return Repeat("rubato_begin", [&] { return rubato_begin(client, step, 1.0); }); };
  if (!awaits) return begin();
  for (;;) {
    std::vector<float> read[2];
    for (uint32_t tensor : {0u, 1u}) {
      const rubato_result there = Repeat("rubato_await", [&] { return rubato_await(client, tensor, 1.0); });
      if (there != RUBATO_OK) return there;
      read[tensor] = Weights(tensor);
    }
    const rubato_result begun = begin();
    if (begun == RUBATO_MOVED) {
      ++moved;
      continue;
    }
    for (uint32_t tensor : {0u, 1u}) {
      const size_t bytes = read[tensor].size() * sizeof(float);
      if (begun == RUBATO_OK && std::memcmp(read[tensor].data(), rubato_weights(client, tensor), bytes) != 0) {
        Fail("step " + std::to_string(step->step) + " began with other weights of tensor " + std::to_string(tensor));
      }
    }
    return begun;
  }
}

void Job::Fill(uint32_t tensor, int64_t elements, const std::function<float(int64_t)>& value) const {
  float* const gradient = rubato_gradient(client, tensor);
  for (int64_t i = 0; i < elements; ++i) gradient[i] = value(i);
}

void Job::Push(uint32_t tensor, uint64_t examples) const {
  Expect(RUBATO_OK, rubato_push(client, tensor, examples), "rubato_push");
}

void Job::ExpectWeights(uint32_t tensor, int64_t elements, int64_t step,
                        const std::function<float(int64_t)>& value) const {
  const float* const weights = rubato_weights(client, tensor);
  for (int64_t i = 0; i < elements; ++i) {
    const float expected = value(i);
    if (weights[i] == expected || (std::isnan(weights[i]) && std::isnan(expected))) continue;
    Fail("step " + std::to_string(step) + ": weight " + std::to_string(i) + " of tensor " + std::to_string(tensor) +
         " is " + std::to_string(weights[i]) + " instead of " + std::to_string(expected));
  }
}

void Job::Close() {
  float* const weights = rubato_weights(client, 0);
  rubato_client* const closed = client;
  client = nullptr;
  Expect(RUBATO_OK, rubato_close(closed, nullptr), "rubato_close");
  if (keeps && std::memcmp(weights, kept[0].data(), kept[0].size() * sizeof(float)) != 0) {
    Fail("weights have not stayed after rubato_close");
  }
  rubato_free_weights(weights);
  rubato_free_weights(weights);
}

}  // namespace rubato::client
