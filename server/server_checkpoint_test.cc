// What a server writes of a job that trains, and how it goes on from that.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/storage/checkpoint.h"
#include "common/storage/file.h"
#include "common/storage/testing/file_size_limit.h"
#include "server/rules/testing/builders.h"
#include "server/testing/server_core_harness.h"

namespace rubato::server {
namespace {

constexpr uint64_t kCut = 7;

class ServerCheckpointTest : public ServerCoreHarness {
 protected:
  ServerCheckpointTest()
      : run_(JoinPath(testing::TempDir(), absl::StrCat("server_checkpoint_test_",
                                                       testing::UnitTest::GetInstance()->current_test_info()->name()))),
        checkpoints_(JoinPath(run_, "checkpoints")) {
    EXPECT_TRUE(MakeDirectories(run_).ok());
    config_.set_run_directory(run_);
    config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::ADAM);
    config_.mutable_optimizer()->set_beta1(0.9);
    config_.mutable_optimizer()->set_beta2(0.999);
    config_.mutable_optimizer()->set_epsilon(1e-8);
    v1::ServerInfo* server = job_.add_servers();
    server->mutable_task()->set_role(v1::TaskId::SERVER);
  }

  bool Await(const std::function<bool()>& condition) {
    const absl::Time deadline = clock_.Now() + kTimeout;
    while (!condition()) {
      if (clock_.Now() > deadline) return false;
      clock_.Sleep(absl::Milliseconds(1));
    }
    return true;
  }
  void PullAll(uint32_t worker, int64_t step) {
    const size_t answers = stream_->count();
    for (uint32_t chunk = 0; chunk < 3; ++chunk) Pull(stream_, worker, chunk, step);
    stream_->Await(answers + 3);
  }
  // A job whose workers do step 0, and a cut after it that is not written yet.
  void CaptureCut() {
    MakeCore();
    ASSERT_TRUE(core_->StartJob(job_).ok());
    Commit(MakePlan(1, v1::ASYNC, 0, {0, 1}));
    PullAll(0, 0);
    PullAll(1, 0);
    v1::Directive announce;
    announce.mutable_announce()->set_generation(2);
    const int before = reports();
    core_->OnDirective(announce);
    AwaitReports(before + 1);
    for (uint32_t chunk = 0; chunk < 3; ++chunk) Push(stream_, 0, chunk, 0);
    Commit(WithCut(MakePlan(2, v1::ASYNC, 1, {0, 1}), kCut));
    EXPECT_EQ(core_->cut_progress().id(), kCut);
    EXPECT_FALSE(core_->cut_progress().written());
    for (uint32_t chunk = 0; chunk < 3; ++chunk) Push(stream_, 1, chunk, 0);
  }
  void TrainToCut() {
    CaptureCut();
    EXPECT_TRUE(Await([this] { return core_->cut_progress().written(); }));
  }
  CheckpointPart Read(const std::string& name) {
    absl::StatusOr<CheckpointPart> part = ReadCheckpointPart(JoinPath(checkpoints_, name), v1::TaskId::SERVER, 0);
    EXPECT_TRUE(part.ok()) << part.status();
    return part.value_or(CheckpointPart());
  }
  void WriteCheckpoint(const std::string& name) {
    v1::Directive directive;
    directive.mutable_checkpoint()->set_name(name);
    core_->OnDirective(directive);
  }
  absl::Status StartFrom(uint64_t cut, const std::string& name) {
    MakeCore(6);
    job_.mutable_restore()->set_id(cut);
    job_.mutable_restore()->set_name(name);
    return core_->StartJob(job_);
  }

  const std::string run_;
  const std::string checkpoints_;
  const std::shared_ptr<FakeConnection> stream_ = std::make_shared<FakeConnection>(1);
};

// It came when the job had gone on without it: what the others restored may be gone by now.
TEST_F(ServerCheckpointTest, AServerWithoutChunksRestoresNothing) {
  MakeCore();
  v1::JobDescription job = job_;
  job.mutable_restore()->set_id(3);
  job.mutable_restore()->set_name("step5");
  for (v1::ChunkPlacement& chunk : *job.mutable_chunks()) chunk.set_server(7);
  const absl::Status status = core_->StartJob(job);
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(ServerCheckpointTest, WritesItsPartOfACutWhenAllPartitionsHaveCapturedTheirs) {
  TrainToCut();
  const CheckpointPart part = Read("step1");
  EXPECT_EQ(part.manifest.cut().id(), kCut);
  EXPECT_EQ(part.manifest.plan().generation(), 2u);
  EXPECT_EQ(static_cast<int64_t>(part.manifest.data_bytes()), core_->cut_progress().bytes());
  ASSERT_EQ(part.manifest.chunks_size(), 3);
  for (const v1::ChunkRecord& chunk : part.manifest.chunks()) {
    EXPECT_EQ(chunk.version(), 2);
    EXPECT_EQ(chunk.updates(), 2);
    EXPECT_EQ(chunk.slots_at_size(), 2);
    EXPECT_EQ(chunk.watermarks_size(), 2);
  }
}

TEST_F(ServerCheckpointTest, ADiskThatLosesWhatItTookIsTold) {
  std::atomic<bool> lost = false;
  on_lost_part_ = [&lost](const absl::Status& status) { lost = absl::IsDataLoss(status); };
  std::optional<FileSizeLimit> full(0);
  CaptureCut();
  EXPECT_TRUE(Await([this] { return !core_->cut_progress().problem().empty(); }));
  EXPECT_FALSE(lost) << "it may have room again";
  const std::string directory = JoinPath(checkpoints_, "step1");
  // None if it goes by way of the page cache: then nothing was let go of.
  const std::vector<std::string> unfinished = ListDirectory(directory).value_or(std::vector<std::string>());
  for (const std::string& file : unfinished) ASSERT_TRUE(RemoveFile(JoinPath(directory, file)).ok());
  full.reset();
  EXPECT_TRUE(Await([&] { return unfinished.empty() ? core_->cut_progress().written() : lost.load(); }));
}

TEST_F(ServerCheckpointTest, GoesOnFromACutWithItsValuesStateAndVersions) {
  config_.mutable_cluster()->set_update_log(true);
  TrainToCut();
  const CheckpointPart cut = Read("step1");
  job_.set_rollback_term(2);
  ASSERT_TRUE(StartFrom(kCut, "step1").ok());
  Commit(MakePlan(3, v1::SYNC, 1, {0, 1}));
  WriteCheckpoint("final");
  EXPECT_EQ(AwaitReport(v1::TaskMessage::kCheckpointDone).checkpoint_done().error(), "");
  const CheckpointPart again = Read("final");
  EXPECT_FALSE(again.manifest.has_cut());
  EXPECT_TRUE(again.data == cut.data);
  ASSERT_EQ(again.manifest.chunks_size(), 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(again.manifest.chunks(i).version(), 2);
    EXPECT_EQ(again.manifest.chunks(i).updates(), 2);
  }
  EXPECT_TRUE(FileExists(run_ + "/updates-server0-partition1.log"));
  EXPECT_TRUE(FileExists(run_ + "/updates-server0-partition1-term2.log"));
}

TEST_F(ServerCheckpointTest, ACutHasWhatCompensationKeepsBetweenPushes) {
  config_.mutable_consistency()->mutable_compensation()->mutable_gap_aware();
  TrainToCut();
  const CheckpointPart cut = Read("step1");
  ASSERT_TRUE(StartFrom(kCut, "step1").ok());
  Commit(MakePlan(3, v1::ASYNC, 1, {0, 1}));
  WriteCheckpoint("final");
  EXPECT_EQ(AwaitReport(v1::TaskMessage::kCheckpointDone).checkpoint_done().error(), "");
  const CheckpointPart again = Read("final");
  EXPECT_TRUE(again.data == cut.data);
  ASSERT_EQ(again.manifest.chunks_size(), 3);
  for (const v1::ChunkRecord& chunk : again.manifest.chunks()) {
    EXPECT_EQ(chunk.compensated(), 2);
    ASSERT_EQ(chunk.slots_at_size(), 3);  // Adam's, and the mean square of moves.
    float mean_square = 0;
    again.Copy(chunk.slots_at(2), 1, &mean_square);
    EXPECT_GT(mean_square, 0);
  }
}

TEST_F(ServerCheckpointTest, GoesOnFromNoOtherCutThanTheOneThatItWasTold) {
  TrainToCut();
  EXPECT_EQ(StartFrom(kCut + 1, "step1").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(StartFrom(kCut, "../step1").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(StartFrom(kCut, "step2").code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(StartFrom(kCut, "step1").ok());
}

TEST_F(ServerCheckpointTest, AServerWithoutChunksHasAPartThatIsEmpty) {
  for (v1::ChunkPlacement& chunk : *job_.mutable_chunks()) chunk.set_server(1);
  MakeCore();
  ASSERT_TRUE(core_->StartJob(job_).ok());
  Commit(WithCut(MakePlan(1, v1::ASYNC, 0, {0}), kCut));
  EXPECT_TRUE(Await([this] { return core_->cut_progress().written(); }));
  EXPECT_EQ(Read("step0").manifest.chunks_size(), 0);
}

TEST_F(ServerCheckpointTest, ACutIsBegunOnceHoweverOftenItsPlanIsCommitted) {
  TrainToCut();
  Commit(WithCut(MakePlan(2, v1::ASYNC, 1, {0, 1}), kCut));
  Commit(Without(WithCut(MakePlan(2, v1::ASYNC, 1, {0, 1}), kCut), 1));
  EXPECT_TRUE(core_->cut_progress().written());
}

TEST_F(ServerCheckpointTest, RefusesNamesThatLeaveTheDirectory) {
  MakeCore();
  ASSERT_TRUE(core_->StartJob(job_).ok());
  WriteCheckpoint("../elsewhere");
  const v1::CheckpointDone done = AwaitReport(v1::TaskMessage::kCheckpointDone).checkpoint_done();
  EXPECT_EQ(done.name(), "../elsewhere");
  EXPECT_NE(done.error().find("step<number>"), std::string::npos) << done.error();
  Commit(WithCut(MakePlan(1, v1::ASYNC, 0, {0}), kCut));
  v1::Plan plan = WithCut(MakePlan(2, v1::ASYNC, 0, {0}), kCut + 1);
  plan.mutable_cut()->set_name("../elsewhere");
  Commit(plan);
  EXPECT_EQ(core_->cut_progress().id(), kCut + 1);
  EXPECT_NE(core_->cut_progress().problem().find("../elsewhere"), std::string::npos);
  EXPECT_FALSE(FileExists(run_ + "/elsewhere"));
}

TEST_F(ServerCheckpointTest, RemovesPartsThatAreNotToBeKept) {
  TrainToCut();
  const std::string old = JoinPath(checkpoints_, "step9");
  ASSERT_TRUE(MakeDirectories(old).ok());
  ASSERT_TRUE(WriteFileAtomically(old + "/server-0.data", "old").ok());
  v1::Directive keep;
  keep.mutable_keep_checkpoints()->add_names("step1");
  core_->OnDirective(keep);
  EXPECT_TRUE(Await([&] { return !FileExists(old); }));
  EXPECT_TRUE(FileExists(checkpoints_ + "/step1/server-0.manifest"));
}

}  // namespace
}  // namespace rubato::server
