#include <numeric>
#include <string>
#include <vector>

#include "client/testing/ways.h"

namespace rubato::client {
namespace {

constexpr int64_t kRowSteps = 12;
constexpr uint64_t kShared = 7, kFar = uint64_t{3} << 62;

void DefineRows(Job* job) {
  rubato_table table = {};
  table.name = "rows";
  table.dimension = 2;
  table.algorithm = RUBATO_TABLE_SGD;
  table.learning_rate = 0.5;
  rubato_hyperparameters group = {};
  rubato_model model = {};
  model.struct_bytes = sizeof(model);
  model.groups = &group;
  model.group_count = 1;
  model.algorithm = RUBATO_SGD;
  model.tables = &table;
  model.table_count = 1;
  job->Expect(RUBATO_OK, rubato_define(job->client, &model), "rubato_define");
}

// The keys of a worker's step: one that is there twice, one of the worker's own and one of the step's.
std::vector<uint64_t> KeysOf(uint32_t rank, int64_t step) {
  return {kShared, kFar + rank, static_cast<uint64_t>(1000 + step), kShared};
}

// A row after so many steps, in which worker 0 has one example and worker 1 three: gradients are 1 for each time that a
// key is there.
float RowOf(uint64_t key, int64_t steps) {
  const auto done = static_cast<float>(steps);
  if (key == kShared) return -0.5f * 2 * done;
  if (key == kFar) return -0.5f * 0.25f * done;
  if (key == kFar + 1) return -0.5f * 0.75f * done;
  const bool of_a_step = key >= 1000 && key < 1000 + static_cast<uint64_t>(steps);
  return of_a_step ? -0.5f : 0.0f;
}

// Whose rows are more than one message has.
std::vector<uint64_t> ManyKeys() {
  std::vector<uint64_t> keys(7000000);
  std::iota(keys.begin(), keys.end(), 0);
  return keys;
}

void ExpectRows(const Job& job, const std::vector<uint64_t>& keys, int64_t steps) {
  std::vector<float> rows(2 * keys.size(), 99);
  job.Expect(RUBATO_OK,
             job.Repeat("rubato_read_rows",
                        [&] { return rubato_read_rows(job.client, 0, keys.data(), keys.size(), rows.data(), 1.0); }),
             "rubato_read_rows");
  for (size_t i = 0; i < rows.size(); ++i) {
    const float expected = RowOf(keys[i / 2], steps);
    if (rows[i] == expected) continue;
    Fail("step " + std::to_string(steps) + ": the row of key " + std::to_string(keys[i / 2]) + " is " +
         std::to_string(rows[i]) + " instead of " + std::to_string(expected));
  }
}

}  // namespace

void Rows(Job* job) {
  job->Open();
  DefineRows(job);
  job->Start();
  rubato_step step;
  const std::vector<float> gradients(8, 1.0f);
  for (int64_t expected = 0; expected < kRowSteps; ++expected) {
    job->Expect(RUBATO_OK, job->Begin(&step), "rubato_begin");
    if (step.step != expected) Fail("not the step that comes next");
    const std::vector<uint64_t> keys = KeysOf(job->rank, expected);
    ExpectRows(*job, keys, expected);
    ExpectRows(*job, {kFar + 1, 5, kShared, kFar}, expected);
    // Of every third step the keys are not known before.
    const std::vector<uint64_t> next = KeysOf(job->rank, expected + 1);
    if (expected % 3 != 2) {
      job->Expect(RUBATO_OK, rubato_ask_rows(job->client, 0, next.data(), next.size()), "rubato_ask_rows");
    }
    // What is refused leaves nothing asked for.
    if (expected == 3) {
      const std::vector<uint64_t> many = ManyKeys();
      job->Expect(RUBATO_INVALID, rubato_ask_rows(job->client, 0, many.data(), many.size()), "asking for too many");
    }
    job->Expect(RUBATO_INVALID, rubato_push_rows(job->client, 1, nullptr, 0, nullptr, 1), "another table");
    job->Expect(RUBATO_INVALID, rubato_push_rows(job->client, 0, keys.data(), keys.size(), nullptr, 1), "no gradients");
    job->Expect(RUBATO_OK,
                rubato_push_rows(job->client, 0, keys.data(), keys.size(), gradients.data(), job->rank == 0 ? 1 : 3),
                "rubato_push_rows");
    job->Expect(RUBATO_INVALID, rubato_push_rows(job->client, 0, nullptr, 0, nullptr, 1), "a second push");
    job->Expect(RUBATO_INVALID, rubato_ask_rows(job->client, 0, keys.data(), keys.size()), "asking after the push");
  }
  job->Expect(RUBATO_OK, job->Begin(&step), "rubato_begin");
  ExpectRows(*job, {kShared, kFar, kFar + 1, 1000 + kRowSteps - 1, 1000 + kRowSteps}, kRowSteps);
  job->Expect(RUBATO_OK, rubato_skip(job->client), "rubato_skip");
  Say("steps", step.step);
  job->Close();
}

void RowsRollback(Job* job) {
  job->Open();
  DefineRows(job);
  job->Start();
  const std::vector<uint64_t> keys = {kShared, 9};
  rubato_step step;
  int wrong = 0;
  for (int after = 0; after < 20;) {
    job->Expect(RUBATO_OK, job->Begin(&step), "rubato_begin");
    std::vector<float> rows(4, 99);
    const auto read = [&] { return rubato_read_rows(job->client, 0, keys.data(), 2, rows.data(), 1.0); };
    // One of them has its rows with the step, the other asks for them in it.
    job->Expect(RUBATO_OK, job->Repeat("rubato_read_rows", read), "rubato_read_rows");
    // What is read of a step that is abandoned is of no use.
    const bool right = rows == std::vector<float>(4, -0.5f * static_cast<float>(step.step));
    wrong += !right;
    if (job->rank == 0) job->Expect(RUBATO_OK, rubato_ask_rows(job->client, 0, keys.data(), 2), "rubato_ask_rows");
    job->Expect(RUBATO_OK, rubato_push_rows(job->client, 0, keys.data(), 2, std::vector<float>(4, 1).data(), 1),
                "rubato_push_rows");
    if (step.rollbacks > 0) ++after;
    Say(step.rollbacks > 0 ? "step again" : "step", step.step);
  }
  // At most in the step in which the job went back.
  if (wrong > 1) Fail(std::to_string(wrong) + " steps began with other rows");
  job->Close();
}

}  // namespace rubato::client
