#include "worker/ps_client/cut_writer.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/storage/checkpoint.h"
#include "common/storage/file.h"

namespace rubato::worker {
namespace {

class CutWriterTest : public testing::Test {
 protected:
  CutWriterTest() {
    directory_ = JoinPath(testing::TempDir(), std::string("cut_writer_test_") +
                                                  testing::UnitTest::GetInstance()->current_test_info()->name());
    task_.set_role(v1::TaskId::WORKER);
    task_.set_index(2);
    writer_ = std::make_unique<CutWriter>(
        CutWriter::Options{.directory = directory_,
                           .job_name = "job",
                           .servers = 3,
                           .task = task_,
                           .queue = {.retry_min = absl::Milliseconds(5), .retry_max = absl::Milliseconds(20)},
                           .clock = &clock_,
                           .log = &log_});
  }

  static v1::Plan PlanOf(uint64_t id, const std::string& name) {
    v1::Plan plan;
    plan.set_generation(id + 1);
    plan.mutable_cut()->set_id(id);
    plan.mutable_cut()->set_name(name);
    return plan;
  }

  static WorkerPart Part(float first) {
    WorkerPart part;
    WorkerPart::Chunk& chunk = part.chunks.emplace_back();
    chunk.record.set_tensor("a.weight");
    chunk.record.add_shape(2);
    chunk.record.set_length(2);
    chunk.residual = {first, first + 1};
    return part;
  }

  // Ten seconds at most.
  bool WaitUntil(const std::function<bool()>& condition) {
    const absl::Time deadline = clock_.Now() + absl::Seconds(10);
    while (!condition()) {
      if (clock_.Now() > deadline) return false;
      clock_.Sleep(absl::Milliseconds(1));
    }
    return true;
  }
  bool WaitUntilWritten() {
    return WaitUntil([this] { return writer_->progress().written(); });
  }

  std::string PathOf(const std::string& checkpoint, const std::string& file) const {
    return JoinPath(JoinPath(directory_, checkpoint), file);
  }

  RealClock clock_;
  Logger log_{"worker 2", &clock_};
  v1::TaskId task_;
  std::string directory_;
  std::unique_ptr<CutWriter> writer_;
};

TEST_F(CutWriterTest, WritesThePartAndSaysHowFarItIs) {
  EXPECT_EQ(writer_->progress().id(), 0u);
  v1::ShardPosition position;
  position.set_shard(5);
  position.set_next(640);
  writer_->Take(PlanOf(1, "step40"), {position}, Part(1));
  EXPECT_EQ(writer_->progress().id(), 1u);
  EXPECT_TRUE(writer_->progress().entered());
  ASSERT_EQ(writer_->progress().shards_size(), 1);
  EXPECT_EQ(writer_->progress().shards(0).next(), 640);
  ASSERT_TRUE(WaitUntilWritten());
  const absl::StatusOr<CheckpointPart> part = ReadCheckpointPart(JoinPath(directory_, "step40"), v1::TaskId::WORKER, 2);
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_EQ(part->manifest.cut().id(), 1u);
  EXPECT_EQ(part->manifest.plan().generation(), 2u);
  EXPECT_EQ(part->manifest.job_name(), "job");
  EXPECT_EQ(writer_->progress().bytes(), static_cast<int64_t>(*FileBytes(PathOf("step40", "worker-2.data")) +
                                                              *FileBytes(PathOf("step40", "worker-2.manifest"))));
}

TEST_F(CutWriterTest, AWorkerThatKeepsNothingHasWrittenItAtOnce) {
  writer_->Take(PlanOf(1, "step40"), {}, WorkerPart());
  EXPECT_TRUE(writer_->progress().written());
  EXPECT_EQ(writer_->progress().bytes(), 0);
  EXPECT_FALSE(FileExists(directory_));
}

TEST_F(CutWriterTest, RefusesNamesThatAreNoCheckpointsOfIt) {
  uint64_t id = 0;
  for (const char* name : {"", "step", "stepx", "step1/..", "../step1", "final", "/stopped", "step 1"}) {
    writer_->Take(PlanOf(++id, name), {}, Part(1));
    EXPECT_EQ(writer_->progress().id(), id);
    EXPECT_TRUE(writer_->progress().entered());
    EXPECT_FALSE(writer_->progress().written());
    EXPECT_EQ(writer_->progress().problem(),
              absl::StrCat("cut.name: value \"", name, "\"; allowed: stopped, step<number>"));
    EXPECT_EQ(log_.last_problem(), absl::StrCat("cut ", id, " is not written: ", writer_->progress().problem()));
  }
  writer_->Take(PlanOf(++id, "stopped"), {}, Part(1));
  EXPECT_TRUE(WaitUntilWritten());
}

// A file is where the directory belongs.
TEST_F(CutWriterTest, TriesAgainUntilItCanBeWritten) {
  ASSERT_TRUE(WriteFileAtomically(directory_, "in the way").ok());
  writer_->Take(PlanOf(1, "step40"), {}, Part(1));
  ASSERT_TRUE(WaitUntil([this] { return !writer_->progress().problem().empty(); }));
  EXPECT_FALSE(writer_->progress().written());
  EXPECT_TRUE(absl::StrContains(writer_->progress().problem(), directory_)) << writer_->progress().problem();
  EXPECT_TRUE(WaitUntil([this] { return absl::StrContains(log_.last_problem(), "not on the disk"); }));
  ASSERT_TRUE(RemoveFile(directory_).ok());
  ASSERT_TRUE(WaitUntilWritten());
  EXPECT_EQ(writer_->progress().problem(), "");
}

TEST_F(CutWriterTest, ANewerOneTakesThePlaceOfOneThatWaits) {
  ASSERT_TRUE(WriteFileAtomically(directory_, "in the way").ok());
  writer_->Take(PlanOf(1, "step40"), {}, Part(1));
  ASSERT_TRUE(WaitUntil([this] { return !writer_->progress().problem().empty(); }));
  writer_->Take(PlanOf(2, "step50"), {}, Part(9));
  EXPECT_EQ(writer_->progress().id(), 2u);
  ASSERT_TRUE(RemoveFile(directory_).ok());
  ASSERT_TRUE(WaitUntilWritten());
  EXPECT_EQ(writer_->progress().id(), 2u);
  EXPECT_TRUE(FileExists(PathOf("step50", "worker-2.manifest")));
  EXPECT_FALSE(FileExists(PathOf("step40", "worker-2.manifest")));
}

TEST_F(CutWriterTest, RemovesItsOwnPartsOfCheckpointsThatAreNotKept) {
  for (const char* checkpoint : {"step10", "step20", "step30", "stopped", "final"}) {
    ASSERT_TRUE(MakeDirectories(JoinPath(directory_, checkpoint)).ok());
    for (const char* file : {"worker-2.data", "worker-2.manifest", "worker-1.data", "server-2.manifest"}) {
      ASSERT_TRUE(WriteFileAtomically(PathOf(checkpoint, file), "x").ok());
    }
  }
  writer_->Take(PlanOf(1, "step40"), {}, Part(1));
  ASSERT_TRUE(WaitUntilWritten());
  v1::KeepCheckpoints keep;
  keep.add_names("step20");
  writer_->Keep(keep);
  for (const char* gone : {"step10", "step30"}) {
    ASSERT_TRUE(WaitUntil([&] { return !FileExists(PathOf(gone, "worker-2.data")); })) << gone;
    EXPECT_FALSE(FileExists(PathOf(gone, "worker-2.manifest")));
    EXPECT_TRUE(FileExists(PathOf(gone, "worker-1.data")));
    EXPECT_TRUE(FileExists(PathOf(gone, "server-2.manifest")));
  }
  // The last one is that of the cut itself, which may not be complete yet.
  for (const char* kept : {"step20", "stopped", "final", "step40"}) {
    EXPECT_TRUE(FileExists(PathOf(kept, "worker-2.data"))) << kept;
    EXPECT_TRUE(FileExists(PathOf(kept, "worker-2.manifest"))) << kept;
  }
}

TEST_F(CutWriterTest, EndsWhileAPartCannotBeWritten) {
  ASSERT_TRUE(WriteFileAtomically(directory_, "in the way").ok());
  writer_->Take(PlanOf(1, "step40"), {}, Part(1));
  ASSERT_TRUE(WaitUntil([this] { return !writer_->progress().problem().empty(); }));
  writer_.reset();
  EXPECT_EQ(*ReadFile(directory_), "in the way");
}

}  // namespace
}  // namespace rubato::worker
