#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/testing/ways.h"

namespace rubato::client {
namespace {

// What worker `rank` pushes in a step: whole numbers, so that all sums are exact.
float GradientOf(uint32_t rank, int64_t step, int64_t i) {
  return static_cast<float>((i % 97) * (rank + 1) + step * 4 - 50 * static_cast<int64_t>(rank));
}

// The weights after that step of Mean.
float MeanOf(uint32_t tensor, int64_t step, int64_t i) {
  const float first = step == 7 && i == 1 ? NAN : GradientOf(0, step, i);
  const bool alone = step % 5 == 4 || (tensor == 1 && step % 4 == 3);
  return alone ? first : (first + 3 * GradientOf(1, step, i)) / 4;
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

}  // namespace

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
    if (job->keeps) {
      float& last = rubato_weights(job->client, 1)[kLarge - 1];
      const float before = std::exchange(last, 12345.0f);
      job->ExpectHas(1, 0);
      last = before;
      job->ExpectHas(1, 1);
    }
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
    // Then both have pushed, and the next step's weights come.
    const std::string pushed = "pushed " + std::to_string(expected);
    job->Expect(RUBATO_OK,
                job->Repeat("rubato_barrier", [&] { return rubato_barrier(job->client, pushed.c_str(), 2, 1.0); }),
                "rubato_barrier");
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
  rubato_result written = RUBATO_AGAIN;
  for (int i = 0; i < 2000 && written == RUBATO_AGAIN; ++i) {
    job->Expect(RUBATO_OK, rubato_skip(job->client), "rubato_skip");
    job->Expect(RUBATO_OK, job->Begin(&step), "rubato_begin");
    written = job->rank == 0 ? rubato_await_checkpoint(job->client, directory, sizeof(directory), 0.02)
                             : rubato_get(job->client, "written", nullptr, 0, &bytes, 0.02);
  }
  job->Expect(RUBATO_OK, written, "a checkpoint");
  if (job->rank == 0) {
    job->Expect(RUBATO_OK, rubato_put(job->client, "written", "", 0), "rubato_put");
    std::printf("checkpoint %s\n", directory);
  }
  // The other one may wait for this step.
  job->Expect(RUBATO_OK, rubato_skip(job->client), "rubato_skip");
  job->Close();
}

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

}  // namespace rubato::client
