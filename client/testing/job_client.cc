// A client for tests/e2e/clients_test.sh: takes part in a job in one of several ways, checks what it gets, and says on
// standard output how far it is. Exit status 0: all was as it should be.
//
//   job_client HOST:PORT RANK SIDECAR WAY [awaits]
//
// With `awaits` it reads each tensor's weights before the step begins, as soon as they are there.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "client/rubato_client.h"

namespace {

constexpr int64_t kSmall = 3, kLarge = 70001;

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "FAILED: %s\n", why.c_str());
  std::exit(1);
}

struct Job {
  const char* coordinator;
  uint32_t rank;
  const char* sidecar;
  bool awaits = false;
  rubato_client* client = nullptr;
  // With `awaits`: how often what was read was void.
  int64_t moved = 0;

  void Expect(rubato_result expected, rubato_result result, const char* what) const {
    if (result == expected) return;
    Fail(std::string(what) + ": " + std::to_string(result) + " instead of " + std::to_string(expected) + ": " +
         rubato_error(client));
  }
  void Open() {
    rubato_options options = {};
    options.struct_bytes = sizeof(options);
    options.coordinator = coordinator;
    options.rank = rank;
    options.sidecar = sidecar;
    options.timeout_seconds = 20;
    Expect(RUBATO_OK, rubato_open(&options, &client), "rubato_open");
  }
  rubato_result Define(rubato_algorithm algorithm, double rate, int64_t small = kSmall, int64_t leased = 0) {
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
    return rubato_define(client, &model);
  }
  void Start() { Expect(RUBATO_OK, rubato_start(client), "rubato_start"); }
  // Until the call returns something else than RUBATO_AGAIN.
  rubato_result Repeat(const char* what, const std::function<rubato_result()>& call) const {
    for (int seconds = 0; seconds < 60; ++seconds) {
      const rubato_result result = call();
      if (result != RUBATO_AGAIN) return result;
    }
    Fail(std::string(what) + " has not returned within 60 s");
  }
  rubato_result Begin(rubato_step* step) {
    const auto begin = [&] { return Repeat("rubato_begin", [&] { return rubato_begin(client, step, 1.0); }); };
    if (!awaits) return begin();
    for (;;) {
      std::vector<float> read[2];
      for (uint32_t tensor : {0u, 1u}) {
        const rubato_result there = Repeat("rubato_await", [&] { return rubato_await(client, tensor, 1.0); });
        if (there != RUBATO_OK) return there;
        const float* const weights = rubato_weights(client, tensor);
        read[tensor].assign(weights, weights + (tensor == 0 ? kSmall : kLarge));
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
  void Fill(uint32_t tensor, int64_t elements, const std::function<float(int64_t)>& value) const {
    float* const gradient = rubato_gradient(client, tensor);
    for (int64_t i = 0; i < elements; ++i) gradient[i] = value(i);
  }
  void Push(uint32_t tensor, uint64_t examples) const {
    Expect(RUBATO_OK, rubato_push(client, tensor, examples), "rubato_push");
  }
  // With the bits of the value.
  void ExpectWeights(uint32_t tensor, int64_t elements, int64_t step,
                     const std::function<float(int64_t)>& value) const {
    const float* const weights = rubato_weights(client, tensor);
    for (int64_t i = 0; i < elements; ++i) {
      const float expected = value(i);
      if (weights[i] == expected || (std::isnan(weights[i]) && std::isnan(expected))) continue;
      Fail("step " + std::to_string(step) + ": weight " + std::to_string(i) + " of tensor " + std::to_string(tensor) +
           " is " + std::to_string(weights[i]) + " instead of " + std::to_string(expected));
    }
  }
  void Close() {
    rubato_client* const closed = client;
    client = nullptr;
    Expect(RUBATO_OK, rubato_close(closed, nullptr), "rubato_close");
  }
};

void Say(const char* what, int64_t number) {
  std::printf("%s %lld\n", what, static_cast<long long>(number));
  std::fflush(stdout);
}

// What worker `rank` pushes in a step: whole numbers, so that all sums are exact.
float GradientOf(uint32_t rank, int64_t step, int64_t i) {
  return static_cast<float>((i % 97) * (rank + 1) + step * 4 - 50 * static_cast<int64_t>(rank));
}

// Steps with MEAN: the weights are the mean of the two workers' gradients, weighted 1 to 3; worker 1 has none of the
// large tensor in every fourth step, and none of either in every fifth; in step 7 worker 0 pushes what is no number.
float MeanOf(uint32_t tensor, int64_t step, int64_t i) {
  const float first = step == 7 && i == 1 ? NAN : GradientOf(0, step, i);
  const bool alone = step % 5 == 4 || (tensor == 1 && step % 4 == 3);
  return alone ? first : (first + 3 * GradientOf(1, step, i)) / 4;
}

void Mean(Job* job) {
  job->Open();
  job->Expect(RUBATO_OK, job->Define(RUBATO_MEAN, 0.1), "rubato_define");
  // Those of worker 0 count.
  for (int64_t i = 0; i < kSmall; ++i) rubato_weights(job->client, 0)[i] = job->rank == 0 ? 5 : -1;
  job->Start();
  rubato_step step;
  for (int64_t expected = 0; expected < 20; ++expected) {
    job->Expect(RUBATO_OK, job->Begin(&step), "rubato_begin");
    if (step.step != expected || step.workers != 2 || step.mode != RUBATO_SYNC) Fail("not the step that comes next");
    for (uint32_t tensor : {0u, 1u}) {
      const int64_t elements = tensor == 0 ? kSmall : kLarge;
      job->ExpectWeights(tensor, elements, step.step, [&](int64_t i) {
        return expected == 0 ? (tensor == 0 ? 5.0f : 0.0f) : MeanOf(tensor, expected - 1, i);
      });
    }
    if (job->rank == 1 && expected % 5 == 4) {
      job->Expect(RUBATO_OK, rubato_skip(job->client), "rubato_skip");
      continue;
    }
    for (uint32_t tensor : {1u, 0u}) {
      if (job->rank == 1 && tensor == 1 && expected % 4 == 3) {
        job->Expect(RUBATO_OK, rubato_push_absent(job->client, tensor), "rubato_push_absent");
        continue;
      }
      job->Fill(tensor, tensor == 0 ? kSmall : kLarge, [&](int64_t i) {
        return job->rank == 0 && expected == 7 && i == 1 ? NAN : GradientOf(job->rank, expected, i);
      });
      job->Push(tensor, job->rank == 0 ? 1 : 3);
    }
    if (expected == 3) job->Expect(RUBATO_INVALID, rubato_push(job->client, 0, 1), "a second push");
    job->Expect(RUBATO_INVALID, rubato_await(job->client, 2, 0), "a wait for a third tensor");
  }
  Say("steps", step.step + 1);
  job->Close();
}

// Steps with SGD equal the formula, also when the learning rate of one group changes.
void Sgd(Job* job) {
  job->Open();
  job->Expect(RUBATO_OK, job->Define(RUBATO_SGD, 0.5), "rubato_define");
  for (int64_t i = 0; i < kLarge; ++i)
    rubato_weights(job->client, 1)[i] = job->rank == 0 ? static_cast<float>(i % 8) : 7;
  job->Start();
  std::vector<float> small(kSmall, 0), large(kLarge);
  for (int64_t i = 0; i < kLarge; ++i) large[static_cast<size_t>(i)] = static_cast<float>(i % 8);
  rubato_step step;
  for (int64_t expected = 0; expected < 12; ++expected) {
    job->Expect(RUBATO_OK, job->Begin(&step), "rubato_begin");
    job->ExpectWeights(0, kSmall, expected, [&](int64_t i) { return small[static_cast<size_t>(i)]; });
    job->ExpectWeights(1, kLarge, expected, [&](int64_t i) { return large[static_cast<size_t>(i)]; });
    if (expected == 6) {
      rubato_hyperparameters values = {};
      values.learning_rate = 0.25;
      job->Expect(RUBATO_OK, rubato_set_hyperparameters(job->client, 1, &values), "rubato_set_hyperparameters");
    }
    const auto gradient = [&](uint32_t rank, int64_t i) { return static_cast<float>((i + expected + rank) % 4); };
    for (uint32_t tensor : {0u, 1u}) {
      job->Fill(tensor, tensor == 0 ? kSmall : kLarge, [&](int64_t i) { return gradient(job->rank, i); });
      job->Push(tensor, 8);
    }
    const auto update = [&](std::vector<float>* weights, float rate) {
      for (size_t i = 0; i < weights->size(); ++i) {
        const auto position = static_cast<int64_t>(i);
        (*weights)[i] -= rate * (gradient(0, position) + gradient(1, position)) / 2;
      }
    };
    update(&small, 0.5f);
    update(&large, expected >= 6 ? 0.25f : 0.5f);
  }
  Say("steps", step.step + 1);
  job->Close();
}

// Steps until the other worker is gone, and some more; or for ever.
void Survive(Job* job, bool killed) {
  job->Open();
  job->Expect(RUBATO_OK, job->Define(RUBATO_SGD, 0.5), "rubato_define");
  job->Start();
  if (killed && fork() == 0) {
    // Has the client's socket open for longer than the client lives.
    alarm(10);
    for (;;) pause();
  }
  rubato_step step;
  for (int alone = 0; killed || alone < 10;) {
    job->Expect(RUBATO_OK, job->Begin(&step), "rubato_begin");
    Say("step", step.step);
    if (step.workers == 1) ++alone;
    job->Push(0, 1);
    job->Push(1, 1);
  }
  Say("alone at step", step.step);
  job->Close();
}

// Steps until the job has gone back to a checkpoint, and some more: weights always are what the step's number says.
void Rollback(Job* job) {
  job->Open();
  job->Expect(RUBATO_OK, job->Define(RUBATO_SGD, 1), "rubato_define");
  job->Start();
  rubato_step step;
  for (int after = 0; after < 20;) {
    job->Expect(RUBATO_OK, job->Begin(&step), "rubato_begin");
    for (uint32_t tensor : {0u, 1u}) {
      const int64_t elements = tensor == 0 ? kSmall : kLarge;
      job->ExpectWeights(tensor, elements, step.step, [&](int64_t) { return -static_cast<float>(step.step); });
      job->Fill(tensor, elements, [](int64_t) { return 1.0f; });
      job->Push(tensor, 1);
    }
    if (step.rollbacks > 0) ++after;
    Say(step.rollbacks > 0 ? "step again" : "step", step.step);
  }
  Say("moved", job->moved);
  job->Close();
}

// Steps while the coordinator is away: a value that is put meanwhile is there when it is back, and who waits for it
// since before gets it.
void Restart(Job* job) {
  job->Open();
  job->Expect(RUBATO_OK, job->Define(RUBATO_SGD, 0.5), "rubato_define");
  job->Start();
  rubato_step step;
  for (bool over = false; !over;) {
    job->Expect(RUBATO_OK, job->Begin(&step), "rubato_begin");
    Say("step", step.step);
    if (job->rank == 0 && step.step == 1000) {
      Say("puts at step", step.step);
      job->Expect(RUBATO_OK, rubato_put(job->client, "over", "", 0), "rubato_put");
    }
    size_t bytes = 1;
    const rubato_result got = rubato_get(job->client, "over", nullptr, 0, &bytes, 0);
    over = got == RUBATO_OK && bytes == 0;
    if (!over) job->Expect(RUBATO_AGAIN, got, "rubato_get");
    job->Push(0, 1);
    job->Push(1, 1);
  }
  job->Close();
}

// Does nothing in the middle of a step, until it is asked to stop: by then it was given up.
void Silent(Job* job) {
  job->Open();
  job->Expect(RUBATO_OK, job->Define(RUBATO_SGD, 0.5), "rubato_define");
  job->Start();
  rubato_step step;
  job->Expect(RUBATO_OK, job->Begin(&step), "rubato_begin");
  job->Push(0, 1);
  pause();
  job->Push(1, 1);
  job->Expect(RUBATO_UNAVAILABLE, job->Begin(&step), "rubato_begin");
  std::printf("%s\n", rubato_error(job->client));
  rubato_close(job->client, "was given up");
}

// What a client is told that has no coordinator, no sidecar, or one that dies.
void Errors(Job* job) {
  rubato_options options = {};
  options.struct_bytes = sizeof(options);
  options.coordinator = "127.0.0.1:1";
  options.sidecar = job->sidecar;
  options.timeout_seconds = 0.5;
  job->Expect(RUBATO_UNAVAILABLE, rubato_open(&options, &job->client), "rubato_open without a coordinator");
  std::printf("%s\n", rubato_error(nullptr));
  options.sidecar = "/does/not/exist";
  job->Expect(RUBATO_UNAVAILABLE, rubato_open(&options, &job->client), "rubato_open without a sidecar");
  std::printf("%s\n", rubato_error(nullptr));
  options.struct_bytes = 1;
  job->Expect(RUBATO_INVALID, rubato_open(&options, &job->client), "rubato_open with a small struct");

  job->Open();
  std::FILE* const children = std::fopen(("/proc/self/task/" + std::to_string(getpid()) + "/children").c_str(), "r");
  int sidecar = 0;
  if (children == nullptr || std::fscanf(children, "%d", &sidecar) != 1) Fail("the sidecar is not found");
  std::fclose(children);
  kill(sidecar, SIGKILL);
  job->Expect(RUBATO_UNAVAILABLE, job->Define(RUBATO_SGD, 0.5), "rubato_define without a sidecar");
  std::printf("%s\n", rubato_error(job->client));
  job->Expect(RUBATO_UNAVAILABLE, rubato_close(job->client, nullptr), "rubato_close without a sidecar");
}

// Models differ: both workers are told so by name.
void Differ(Job* job) {
  job->Open();
  const rubato_result result = job->Define(RUBATO_SGD, 0.5, job->rank == 0 ? kSmall : kSmall + 1);
  if (job->rank == 1) {
    job->Expect(RUBATO_REFUSED, result, "rubato_define");
  } else {
    job->Expect(RUBATO_OK, result, "rubato_define");
    Say("defined", 1);
    job->Start();
    rubato_step step;
    job->Expect(RUBATO_FAILED, job->Begin(&step), "rubato_begin");
  }
  std::printf("refused: %s\n", rubato_error(job->client));
  rubato_close(job->client, "models differ");
}

// Steps until it is told that it is over: SIGTERM reaches it, or the job is stopped.
void UntilEnded(Job* job) {
  job->Open();
  job->Expect(RUBATO_OK, job->Define(RUBATO_SGD, 0.5), "rubato_define");
  job->Start();
  rubato_step step;
  for (;;) {
    const rubato_result result = job->Begin(&step);
    if (result == RUBATO_ENDED) break;
    job->Expect(RUBATO_OK, result, "rubato_begin");
    Say("step", step.step);
    job->Push(0, 1);
    job->Push(1, 1);
  }
  job->Expect(RUBATO_ENDED, rubato_begin(job->client, &step, 1), "another rubato_begin");
  Say("ended at step", step.step);
  job->Close();
}

// Leased data: says which examples it pushed.
void Lease(Job* job) {
  job->Open();
  job->Expect(RUBATO_OK, job->Define(RUBATO_SGD, 0.5, kSmall, 1000), "rubato_define");
  job->Start();
  rubato_lease_range lease = {};
  rubato_step step;
  for (;;) {
    job->Expect(RUBATO_OK, job->Begin(&step), "rubato_begin");
    if (lease.begin == lease.end) {
      const rubato_result leased = rubato_lease(job->client, &lease, 0.05);
      if (leased == RUBATO_ENDED) break;
      if (leased == RUBATO_AGAIN) {
        lease = {};
        job->Expect(RUBATO_OK, rubato_skip(job->client), "rubato_skip");
        continue;
      }
      job->Expect(RUBATO_OK, leased, "rubato_lease");
    }
    const int64_t end = std::min(lease.begin + 16, lease.end);
    job->Expect(RUBATO_OK, rubato_set_slice(job->client, lease.shard, lease.begin, end), "rubato_set_slice");
    const auto examples = static_cast<uint64_t>(end - lease.begin);
    job->Push(0, examples);
    job->Push(1, examples);
    std::printf("trained %lld %lld %lld\n", static_cast<long long>(lease.epoch), static_cast<long long>(lease.begin),
                static_cast<long long>(end));
    lease.begin = end;
  }
  job->Close();
}

// What a forked child and a second thread may not do.
void CheckMisuse(const Job& job) {
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = rubato_skip(job.client) == RUBATO_FORKED && std::strlen(rubato_error(job.client)) > 0 &&
                         rubato_close(job.client, nullptr) == RUBATO_FORKED;
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) Fail("a forked child was not refused");
  std::atomic<bool> stop = false;
  std::atomic<int> refused = 0;
  std::thread other([&] {
    while (!stop) refused += rubato_report(job.client, 1, 0, 0) == RUBATO_INVALID;
  });
  for (int i = 0; i < 1000 || refused == 0; ++i) refused += rubato_report(job.client, 1, 0, 0) == RUBATO_INVALID;
  stop = true;
  other.join();
}

// The velocity of element i of a tensor that an optimizer brings with it, and after a step with a momentum of 0.5 and a
// gradient of 1.
float VelocityOf(uint32_t tensor, int64_t i) { return static_cast<float>(tensor * 100 + i % 64); }
float NextVelocity(uint32_t tensor, int64_t i) { return 0.5f * VelocityOf(tensor, i) + 1; }

void ExpectState(const Job& job, int64_t expected_updates, float (*expected)(uint32_t tensor, int64_t i)) {
  int64_t updates[2] = {-1, -1};
  rubato_result fetched = RUBATO_AGAIN;
  for (int i = 0; i < 200 && fetched == RUBATO_AGAIN; ++i) {
    fetched = rubato_fetch_state(job.client, 0, updates, 0.1);
  }
  job.Expect(RUBATO_OK, fetched, "rubato_fetch_state");
  for (uint32_t tensor : {0u, 1u}) {
    if (updates[tensor] != expected_updates) Fail("updates of a tensor are " + std::to_string(updates[tensor]));
    for (int64_t i = 0; i < (tensor == 0 ? kSmall : kLarge); ++i) {
      if (rubato_gradient(job.client, tensor)[i] != expected(tensor, i)) Fail("another velocity");
    }
  }
}

// An optimizer that has stepped before: servers go on with its state, which can be fetched. Then a checkpoint, for
// which both go on with steps of nothing.
void State(Job* job) {
  job->Open();
  int64_t updates[2];
  job->Expect(RUBATO_INVALID, rubato_fetch_state(job->client, 0, updates, 1), "rubato_fetch_state before a model");
  job->Expect(RUBATO_OK, job->Define(RUBATO_MOMENTUM, 1), "rubato_define");
  for (uint32_t tensor : {0u, 1u}) {
    std::vector<float> velocity(static_cast<size_t>(tensor == 0 ? kSmall : kLarge));
    for (size_t i = 0; i < velocity.size(); ++i) velocity[i] = VelocityOf(tensor, static_cast<int64_t>(i));
    job->Expect(RUBATO_INVALID, rubato_set_state(job->client, tensor, 1, velocity.data(), 7), "another slot");
    // That of worker 0 counts.
    if (job->rank == 0) {
      job->Expect(RUBATO_OK, rubato_set_state(job->client, tensor, 0, velocity.data(), 7), "rubato_set_state");
    }
    const rubato_hyperparameters values = {.learning_rate = 1, .weight_decay = 0, .momentum = 0.5};
    job->Expect(RUBATO_OK, rubato_set_hyperparameters(job->client, tensor, &values), "rubato_set_hyperparameters");
  }
  job->Start();
  rubato_step step;
  job->Expect(RUBATO_OK, job->Begin(&step), "rubato_begin");
  ExpectState(*job, 7, VelocityOf);
  for (uint32_t tensor : {0u, 1u}) {
    job->Fill(tensor, tensor == 0 ? kSmall : kLarge, [](int64_t) { return 1.0f; });
    job->Push(tensor, 1);
  }
  job->Expect(RUBATO_OK, job->Begin(&step), "rubato_begin");
  ExpectState(*job, 8, NextVelocity);
  job->ExpectWeights(1, kLarge, step.step, [](int64_t i) { return -NextVelocity(1, i); });
  char directory[512] = "";
  size_t bytes = 0;
  for (rubato_result written = RUBATO_AGAIN; written == RUBATO_AGAIN;) {
    job->Expect(RUBATO_OK, rubato_skip(job->client), "rubato_skip");
    job->Expect(RUBATO_OK, job->Begin(&step), "rubato_begin");
    written = job->rank == 0 ? rubato_await_checkpoint(job->client, directory, sizeof(directory), 0.02)
                             : rubato_get(job->client, "written", nullptr, 0, &bytes, 0.02);
    if (written != RUBATO_AGAIN) job->Expect(RUBATO_OK, written, "a checkpoint");
  }
  if (job->rank == 0) {
    job->Expect(RUBATO_OK, rubato_put(job->client, "written", "", 0), "rubato_put");
    std::printf("checkpoint %s\n", directory);
  }
  // The other one may wait for this step.
  job->Expect(RUBATO_OK, rubato_skip(job->client), "rubato_skip");
  job->Close();
}

// Values, barriers, a change of mode and a checkpoint.
void Talk(Job* job) {
  job->Open();
  job->Expect(RUBATO_OK, job->Define(RUBATO_SGD, 0.5), "rubato_define");
  char value[16] = "";
  size_t bytes = 0;
  if (job->rank == 0) {
    job->Expect(RUBATO_OK, rubato_put(job->client, "greeting", "hello", 5), "rubato_put");
  } else {
    rubato_result got = RUBATO_AGAIN;
    for (int i = 0; i < 200 && got == RUBATO_AGAIN; ++i) {
      got = rubato_get(job->client, "greeting", value, 4, &bytes, 0.1);
    }
    job->Expect(RUBATO_OK, got, "rubato_get");
    if (bytes != 5 || std::string(value, 4) != "hell") Fail("another value");
    job->Expect(RUBATO_AGAIN, rubato_get(job->client, "nothing", value, 4, &bytes, 0.1), "rubato_get of nothing");
  }
  for (int round = 0; round < 3; ++round) {
    rubato_result passed = RUBATO_AGAIN;
    for (int i = 0; i < 200 && passed == RUBATO_AGAIN; ++i) passed = rubato_barrier(job->client, "here", 2, 0.1);
    job->Expect(RUBATO_OK, passed, "rubato_barrier");
  }
  job->Expect(RUBATO_OK, rubato_erase(job->client, "greeting"), "rubato_erase");
  job->Start();
  rubato_step step;
  bool asynchronous = false;
  for (int i = 0; i < 2000 && !asynchronous; ++i) {
    job->Expect(RUBATO_OK, job->Begin(&step), "rubato_begin");
    asynchronous = step.mode == RUBATO_ASYNC;
    job->Push(0, 1);
    job->Push(1, 1);
    if (i == 3 && job->rank == 0) CheckMisuse(*job);
    if (i == 5 && job->rank == 0) job->Expect(RUBATO_OK, rubato_checkpoint(job->client), "rubato_checkpoint");
    if (i >= 10 && job->rank == 0 && !asynchronous) {
      const rubato_result switched = rubato_switch(job->client, RUBATO_ASYNC, 0, 0, 0, 0.02);
      if (switched != RUBATO_AGAIN) job->Expect(RUBATO_OK, switched, "rubato_switch");
    }
  }
  if (!asynchronous) Fail("the mode does not change");
  Say("asynchronous at step", step.step);
  job->Close();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5 && argc != 6) return 2;
  Job job = {.coordinator = argv[1],
             .rank = static_cast<uint32_t>(std::atoi(argv[2])),
             .sidecar = argv[3],
             .awaits = argc == 6 && std::strcmp(argv[5], "awaits") == 0};
  const std::map<std::string, std::function<void(Job*)>> ways = {{"mean", Mean},
                                                                 {"sgd", Sgd},
                                                                 {"survive", [](Job* one) { Survive(one, false); }},
                                                                 {"killed", [](Job* one) { Survive(one, true); }},
                                                                 {"differ", Differ},
                                                                 {"ended", UntilEnded},
                                                                 {"errors", Errors},
                                                                 {"lease", Lease},
                                                                 {"restart", Restart},
                                                                 {"rollback", Rollback},
                                                                 {"silent", Silent},
                                                                 {"state", State},
                                                                 {"talk", Talk}};
  const auto way = ways.find(argv[4]);
  if (way == ways.end()) return 2;
  way->second(&job);
  return 0;
}
