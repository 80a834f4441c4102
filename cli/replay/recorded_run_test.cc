#include "cli/replay/recorded_run.h"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rubato {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Worker w has incarnation 100 + w.
v1::UpdateLogRecord PlanRecord(uint64_t generation, uint64_t amendment = 0) {
  v1::UpdateLogRecord record;
  record.mutable_plan()->set_generation(generation);
  record.mutable_plan()->set_amendment(amendment);
  return record;
}

struct PushOptions {
  uint32_t worker = 0;
  int64_t step = 0;
  uint32_t chunk = 0;
  int64_t base = 0;
  int64_t applied = 0;
  bool ineffective = false;
  uint64_t shard = 1;
};

v1::UpdateLogRecord PushRecord(const PushOptions& options) {
  v1::UpdateLogRecord record;
  v1::UpdateRecord& update = *record.mutable_update();
  update.set_worker(options.worker);
  update.set_incarnation(100 + options.worker);
  update.set_generation(1);
  update.set_step(options.step);
  update.set_chunk(options.chunk);
  update.set_base_version(options.base);
  update.set_applied_version(options.applied);
  update.set_examples(options.ineffective ? 0 : 8);
  update.set_ineffective(options.ineffective);
  update.mutable_slice()->set_shard(options.shard);
  return record;
}

v1::UpdateLogRecord ServedRecord(uint32_t worker, int64_t step, uint32_t chunk, int64_t version) {
  v1::UpdateLogRecord record;
  v1::ServedRecord& served = *record.mutable_served();
  served.set_worker(worker);
  served.set_incarnation(100 + worker);
  served.set_step(step);
  served.add_chunks(chunk);
  served.add_versions(version);
  return record;
}

// Each chunk has a log of its own.
class RecordedRunTest : public ::testing::Test {
 protected:
  absl::Status Add(const v1::UpdateLogRecord& record, uint32_t chunk = 0) {
    return builder_.Add(absl::StrCat("log ", chunk), record);
  }
  void Expect(const v1::UpdateLogRecord& record, uint32_t chunk = 0) {
    const absl::Status status = Add(record, chunk);
    EXPECT_TRUE(status.ok()) << status;
  }
  void ExpectDataLoss(const v1::UpdateLogRecord& record, const std::string& message) {
    const absl::Status status = Add(record);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(message));
  }

  RecordedRunBuilder builder_{2};
};

TEST_F(RecordedRunTest, SaysWhichVersionsAStepIsOfAndWhichPushesMadeThem) {
  Expect(PlanRecord(1));
  Expect(PushRecord({.worker = 0, .step = 0, .chunk = 0, .base = 0, .applied = 1}));
  Expect(PushRecord({.worker = 1, .step = 0, .chunk = 0, .base = 0, .applied = 2}));
  Expect(PushRecord({.worker = 1, .step = 0, .chunk = 1, .base = 0, .applied = 1}), 1);
  Expect(PushRecord({.worker = 0, .step = 0, .chunk = 1, .base = 0, .applied = 2}), 1);
  Expect(PushRecord({.worker = 0, .step = 1, .chunk = 0, .base = 1, .applied = 3}));
  Expect(PushRecord({.worker = 0, .step = 1, .chunk = 1, .base = 2, .applied = 3}), 1);
  const absl::StatusOr<RecordedRun> run = std::move(builder_).Build();
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_EQ(run->members.size(), 2u);
  ASSERT_EQ(run->members[0].steps.size(), 2u);
  EXPECT_THAT(run->members[0].steps[1].versions, ElementsAre(1, 2));
  EXPECT_EQ(run->members[1].task.incarnation(), 101u);
  ASSERT_EQ(run->updates[1].size(), 3u);
  EXPECT_EQ(run->updates[1][0][0].member, 1u);
  EXPECT_EQ(run->updates[1][2][0].step, 1u);
}

TEST_F(RecordedRunTest, PushesOfOneVersionAreOneUpdateInTheirOrder) {
  Expect(PlanRecord(1));
  for (uint32_t worker : {2u, 0u}) {
    Expect(PushRecord({.worker = worker, .applied = 1}));
    Expect(PushRecord({.worker = worker, .chunk = 1, .applied = 1}), 1);
  }
  const absl::StatusOr<RecordedRun> run = std::move(builder_).Build();
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_EQ(run->updates[0].size(), 1u);
  ASSERT_EQ(run->updates[0][0].size(), 2u);
  EXPECT_EQ(run->members[run->updates[0][0][0].member].task.index(), 2u);
}

TEST_F(RecordedRunTest, OfAKilledWorkersLastStepTheAnswerSaysTheVersion) {
  Expect(PlanRecord(1));
  Expect(PushRecord({.worker = 1, .step = 0, .applied = 1}));
  Expect(PushRecord({.worker = 1, .step = 0, .chunk = 1, .applied = 1}), 1);
  Expect(ServedRecord(0, 5, 0, 1));
  Expect(ServedRecord(0, 5, 1, 1), 1);
  // Killed before it pushed to chunk 0.
  Expect(PushRecord({.worker = 0, .step = 5, .chunk = 1, .base = 1, .applied = 2}), 1);
  const absl::StatusOr<RecordedRun> run = std::move(builder_).Build();
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(run->members[0].steps[0].versions, ElementsAre(1, 1));
}

TEST_F(RecordedRunTest, AStepThatWasServedAndNeverPushedIsNone) {
  Expect(PlanRecord(1));
  Expect(ServedRecord(0, 0, 0, 0));
  const absl::StatusOr<RecordedRun> run = std::move(builder_).Build();
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_TRUE(run->members.empty());
}

TEST_F(RecordedRunTest, VersionsThatNoLogHasAreAnError) {
  Expect(PlanRecord(1));
  Expect(PushRecord({.applied = 1}));
  const absl::StatusOr<RecordedRun> run = std::move(builder_).Build();
  EXPECT_TRUE(absl::IsDataLoss(run.status()));
  EXPECT_THAT(run.status().message(),
              HasSubstr("step 0 of worker 0: which version of chunk 1 it was computed from is not recorded"));
}

TEST_F(RecordedRunTest, APlanThatNoLogHasIsAnError) {
  Expect(PushRecord({.applied = 1}));
  Expect(PushRecord({.chunk = 1, .applied = 1}), 1);
  const absl::StatusOr<RecordedRun> run = std::move(builder_).Build();
  EXPECT_THAT(run.status().message(), HasSubstr("step 0 of worker 0 is of plan 1, which no log has"));
}

TEST_F(RecordedRunTest, ThePlanIsTheOneThatWasDecided) {
  Expect(PlanRecord(1, /*amendment=*/2));
  Expect(PlanRecord(1, /*amendment=*/0), 1);
  Expect(PlanRecord(1, /*amendment=*/1));
  const absl::StatusOr<RecordedRun> run = std::move(builder_).Build();
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->plans.at(1).amendment(), 0u);
}

TEST_F(RecordedRunTest, RefusesWhatContradictsItself) {
  Expect(PushRecord({.worker = 0, .step = 0, .applied = 1}));
  ExpectDataLoss(PushRecord({.worker = 1, .step = 0, .base = 0, .applied = 3}),
                 "log 0: step 0 of worker 1 on chunk 0 made version 3; the chunk was at 1");
  ExpectDataLoss(PushRecord({.worker = 2, .step = 0, .base = 2, .applied = 2}),
                 "step 0 of worker 2 on chunk 0 was computed from version 2 and made version 2");
  ExpectDataLoss(PushRecord({.worker = 0, .step = 0, .applied = 2}), "was pushed to chunk 0 twice");
  ExpectDataLoss(PushRecord({.worker = 3, .step = 0, .chunk = 2, .applied = 1}), "chunk 2; the job has 2");
  ExpectDataLoss(ServedRecord(4, 0, 0, 7), "step 0 of worker 4 was served version 7 of chunk 0, which was at");
  ExpectDataLoss(PushRecord({.worker = 5, .step = 0, .applied = 9, .ineffective = true}),
                 "changed nothing at version 9");
  ExpectDataLoss({}, "a record that says nothing");
}

TEST_F(RecordedRunTest, RefusesAPushOfAnotherVersionThanWasServed) {
  Expect(PushRecord({.worker = 1, .applied = 1}));
  Expect(ServedRecord(0, 1, 0, 1));
  Expect(PushRecord({.worker = 2, .applied = 2}));
  ExpectDataLoss(PushRecord({.worker = 0, .step = 1, .base = 2, .applied = 3}),
                 "step 1 of worker 0 was computed from version 2 of chunk 0, and was served 1");
}

TEST_F(RecordedRunTest, RefusesAChunkInTwoLogs) {
  Expect(PushRecord({.worker = 0, .applied = 1}), 0);
  const absl::Status status = Add(PushRecord({.worker = 1, .applied = 2}), 1);
  EXPECT_THAT(status.message(), HasSubstr("log 1: chunk 0, which log 0 has, too"));
}

TEST_F(RecordedRunTest, RefusesAStepOfTwoBatches) {
  Expect(PushRecord({.chunk = 0, .applied = 1, .shard = 1}));
  const absl::Status status = Add(PushRecord({.chunk = 1, .applied = 1, .shard = 2}), 1);
  EXPECT_THAT(status.message(), HasSubstr("step 0 of worker 0 has another plan or batch on chunk 1"));
}

}  // namespace
}  // namespace rubato
