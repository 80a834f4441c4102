#include <signal.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <string>

#include "client/testing/ways.h"

namespace rubato::client {

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
  rubato_model model = {};
  model.struct_bytes = offsetof(rubato_model, admission) + 3;
  job->Expect(RUBATO_INVALID, rubato_define(job->client, &model), "rubato_define with a part of a field");
  std::FILE* const children = std::fopen(("/proc/self/task/" + std::to_string(getpid()) + "/children").c_str(), "r");
  int sidecar = 0;
  if (children == nullptr || std::fscanf(children, "%d", &sidecar) != 1) Fail("the sidecar is not found");
  std::fclose(children);
  kill(sidecar, SIGKILL);
  job->Expect(RUBATO_UNAVAILABLE, job->Define(RUBATO_SGD, 0.5), "rubato_define without a sidecar");
  std::printf("%s\n", rubato_error(job->client));
  job->Expect(RUBATO_UNAVAILABLE, rubato_close(job->client, nullptr), "rubato_close without a sidecar");
}

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

}  // namespace rubato::client
