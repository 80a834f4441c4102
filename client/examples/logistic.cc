// A classifier of two classes, in C++, whose examples the coordinator leases: two workers share them, and if one is
// lost the other takes over what it had still to do.
//
//   logistic HOST:PORT RANK [SIDECAR]
//
// with the coordinator's address, once with rank 0 and once with rank 1 (docs/clients.md shows how the job is started).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "client/rubato_client.h"

namespace {

constexpr int64_t kExamples = 20000, kEpochs = 2, kBatch = 100;
constexpr int kFeatures = 8;

struct Example {
  float features[kFeatures];
  float label;
};

// Every worker makes the same example from its position.
Example MakeExample(int64_t position) {
  Example example{};
  uint64_t state = static_cast<uint64_t>(position) * 0x9e3779b97f4a7c15u + 1;
  float score = 0.3f;
  for (int f = 0; f < kFeatures; ++f) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    example.features[f] = static_cast<float>(state >> 40) / static_cast<float>(1 << 23) - 1;
    score += example.features[f] * static_cast<float>(f % 2 == 0 ? f + 1 : -f);
  }
  example.label = score > 0 ? 1 : 0;
  return example;
}

// A client that closes itself, and tells of errors by exceptions.
class Client {
 public:
  Client(const char* coordinator, uint32_t rank, const char* sidecar) {
    rubato_options options = {};
    options.struct_bytes = sizeof(options);
    options.coordinator = coordinator;
    options.rank = rank;
    options.sidecar = sidecar;
    if (rubato_open(&options, &client_) != RUBATO_OK) throw std::runtime_error(rubato_error(nullptr));
  }
  ~Client() {
    if (client_ != nullptr) rubato_close(client_, "an exception");
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  rubato_result Check(rubato_result result) {
    if (result < 0) throw std::runtime_error(rubato_error(client_));
    return result;
  }
  void Close() {
    rubato_client* const client = client_;
    client_ = nullptr;
    if (rubato_close(client, nullptr) != RUBATO_OK) throw std::runtime_error(rubato_error(nullptr));
  }
  rubato_client* get() { return client_; }

 private:
  rubato_client* client_ = nullptr;
};

// Pushes the gradients of examples [begin, end).
void Train(Client* client, int64_t begin, int64_t end) {
  const float* const weight = rubato_weights(client->get(), 0);
  const float* const bias = rubato_weights(client->get(), 1);
  std::vector<float> gradient(kFeatures + 1, 0);
  double loss = 0, correct = 0;
  for (int64_t position = begin; position < end; ++position) {
    const Example example = MakeExample(position);
    float score = bias[0];
    for (int f = 0; f < kFeatures; ++f) score += weight[f] * example.features[f];
    const float probability = 1 / (1 + std::exp(-score));
    loss -= std::log(std::max(example.label > 0 ? probability : 1 - probability, 1e-7f));
    correct += (probability > 0.5f) == (example.label > 0);
    const float error = (probability - example.label) / static_cast<float>(end - begin);
    for (int f = 0; f < kFeatures; ++f) gradient[static_cast<size_t>(f)] += error * example.features[f];
    gradient[kFeatures] += error;
  }
  for (int f = 0; f < kFeatures; ++f) rubato_gradient(client->get(), 0)[f] = gradient[static_cast<size_t>(f)];
  rubato_gradient(client->get(), 1)[0] = gradient[kFeatures];
  const auto examples = static_cast<uint64_t>(end - begin);
  client->Check(rubato_push(client->get(), 0, examples));
  client->Check(rubato_push(client->get(), 1, examples));
  client->Check(rubato_report(client->get(), examples, loss, correct));
}

void Run(Client* client, uint32_t rank) {
  const int64_t features = kFeatures;
  const rubato_tensor tensors[] = {{"weight", &features, 1, 0}, {"bias", nullptr, 0, 0}};
  rubato_hyperparameters group = {};
  group.learning_rate = 0.05;
  group.beta1 = 0.9, group.beta2 = 0.999, group.epsilon = 1e-8;
  rubato_model model = {};
  model.struct_bytes = sizeof(model);
  model.tensors = tensors;
  model.tensor_count = 2;
  model.groups = &group;
  model.group_count = 1;
  model.algorithm = RUBATO_ADAM;
  model.leased_examples = kExamples;
  model.shard_examples = 10 * kBatch;
  model.epochs = kEpochs;
  client->Check(rubato_define(client->get(), &model));
  client->Check(rubato_start(client->get()));

  rubato_lease_range lease = {};  // Empty: none is at work.
  int64_t trained = 0;
  uint64_t rollbacks = 0;
  for (;;) {
    rubato_step step;
    const rubato_result begun = client->Check(rubato_begin(client->get(), &step, 1.0));
    if (begun == RUBATO_AGAIN) continue;
    if (begun == RUBATO_ENDED) break;
    if (step.rollbacks != rollbacks) lease = {};
    rollbacks = step.rollbacks;
    if (lease.begin == lease.end) {
      const rubato_result leased = client->Check(rubato_lease(client->get(), &lease, 0.05));
      if (leased == RUBATO_ENDED) break;
      if (leased == RUBATO_AGAIN) {
        lease = {};
        client->Check(rubato_skip(client->get()));  // Others may wait for this worker's step.
        continue;
      }
    }
    const int64_t end = std::min(lease.begin + kBatch, lease.end);
    client->Check(rubato_set_slice(client->get(), lease.shard, lease.begin, end));
    client->Check(rubato_set_epoch(client->get(),
                                   static_cast<double>(lease.epoch) + static_cast<double>(lease.begin) / kExamples));
    Train(client, lease.begin, end);
    trained += end - lease.begin;
    lease.begin = end;
  }
  int64_t correct = 0;
  const float* const weight = rubato_weights(client->get(), 0);
  for (int64_t position = kExamples; position < kExamples + 2000; ++position) {
    const Example example = MakeExample(position);
    float score = rubato_weights(client->get(), 1)[0];
    for (int f = 0; f < kFeatures; ++f) score += weight[f] * example.features[f];
    correct += (score > 0) == (example.label > 0);
  }
  std::printf("worker %u trained %lld examples; %.1f %% of others are right\n", rank, static_cast<long long>(trained),
              static_cast<double>(correct) / 20);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s HOST:PORT RANK [SIDECAR]\n", argv[0]);
    return 2;
  }
  const auto rank = static_cast<uint32_t>(std::atoi(argv[2]));
  try {
    Client client(argv[1], rank, argc > 3 ? argv[3] : nullptr);
    Run(&client, rank);
    client.Close();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
