#include "common/storage/part_writer.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(30);

class PartWriterTest : public testing::Test {
 protected:
  PartWriterTest()
      : directory_(JoinPath(
            testing::TempDir(),
            absl::StrCat("part_writer_test_", testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    v1::TaskId task;
    task.set_role(v1::TaskId::SERVER);
    writer_.emplace(
        PartWriter::Options{.directory = directory_,
                            .task = task,
                            .queue = {.retry_min = absl::Milliseconds(1), .retry_max = absl::Milliseconds(4)},
                            .clock = &clock_,
                            .log = &log_,
                            .on_checkpoint = [this](const std::string& name) { OnCheckpoint(name); }});
  }
  ~PartWriterTest() override { writer_.reset(); }

  // Written, it is a file with 16 bytes; weights_ stands for what it holds meanwhile.
  PendingPart MakePart(const std::string& name, uint64_t cut) {
    PendingPart part{.name = name};
    part.cut.set_id(cut);
    part.cut.set_name(name);
    part.write = [path = PathOf(name), held = weights_](const std::function<bool()>&) -> absl::StatusOr<int64_t> {
      RUBATO_RETURN_IF_ERROR(MakeDirectories(DirectoryOf(path)));
      RUBATO_RETURN_IF_ERROR(WriteFileAtomically(path, std::string(16, 'x')));
      return 16;
    };
    return part;
  }
  std::string PathOf(const std::string& name) const { return JoinPath(JoinPath(directory_, name), "server-0.data"); }
  void AddCut(const std::string& name, uint64_t id) {
    PendingPart part = MakePart(name, id);
    writer_->BeginCut(part.cut);
    writer_->AddCut(std::move(part));
  }
  v1::CutProgress AwaitProgress(const std::function<bool(const v1::CutProgress&)>& condition) {
    const absl::Time deadline = clock_.Now() + kTimeout;
    for (;;) {
      const v1::CutProgress progress = writer_->progress();
      if (condition(progress)) return progress;
      if (clock_.Now() > deadline) {
        ADD_FAILURE() << "waited in vain: " << progress.ShortDebugString();
        return progress;
      }
      clock_.Sleep(absl::Milliseconds(1));
    }
  }
  std::vector<std::string> AwaitCheckpoints(size_t count) {
    MutexLock lock(mu_);
    while (checkpoints_.size() < count) {
      if (!changed_.WaitFor(mu_, kTimeout)) break;
    }
    EXPECT_NE(thread_, std::this_thread::get_id());
    return checkpoints_;
  }
  // Nothing can be written before Mend.
  void Break() { ASSERT_TRUE(WriteFileAtomically(directory_, "a file in the place of the directory").ok()); }
  void Mend() { ASSERT_TRUE(RemoveFile(directory_).ok()); }

  const std::string directory_;
  RealClock clock_;
  Logger log_{"test", &clock_};
  const std::shared_ptr<int> weights_ = std::make_shared<int>();
  std::optional<PartWriter> writer_;

 private:
  void OnCheckpoint(const std::string& name) {
    MutexLock lock(mu_);
    checkpoints_.push_back(name);
    thread_ = std::this_thread::get_id();
    changed_.NotifyAll();
  }

  Mutex mu_;
  CondVar changed_;
  std::vector<std::string> checkpoints_ ABSL_GUARDED_BY(mu_);
  std::thread::id thread_ ABSL_GUARDED_BY(mu_);
};

TEST_F(PartWriterTest, WritesACutAndLetsGoOfItsBuffers) {
  AddCut("step12", 3);
  const v1::CutProgress progress = AwaitProgress([](const v1::CutProgress& p) { return p.written(); });
  EXPECT_EQ(progress.id(), 3u);
  EXPECT_EQ(progress.bytes(), 16);
  EXPECT_EQ(weights_.use_count(), 1);
  EXPECT_TRUE(FileExists(PathOf("step12")));
}

TEST_F(PartWriterTest, ADiskThatFailsIsTriedAgainUntilItWorks) {
  Break();
  AddCut("step12", 3);
  const v1::CutProgress failed = AwaitProgress([](const v1::CutProgress& p) { return !p.problem().empty(); });
  EXPECT_FALSE(failed.written());
  EXPECT_NE(failed.problem().find("cannot create directory"), std::string::npos) << failed.problem();
  EXPECT_NE(log_.last_problem().find("checkpoint step12 is not on the disk"), std::string::npos);
  EXPECT_GT(weights_.use_count(), 1);
  Mend();
  EXPECT_EQ(AwaitProgress([](const v1::CutProgress& p) { return p.written(); }).problem(), "");
}

TEST_F(PartWriterTest, ACheckpointIsReportedOnceItIsOnTheDiskAndNotFromTheThreadThatAskedForIt) {
  Break();
  writer_->AddCheckpoint(MakePart("final", 0));
  writer_->AddCheckpoint(MakePart("final", 0));
  Mend();
  EXPECT_EQ(AwaitCheckpoints(1), std::vector<std::string>{"final"});
  EXPECT_TRUE(FileExists(PathOf("final")));
  EXPECT_EQ(writer_->progress().id(), 0u);
}

TEST_F(PartWriterTest, RemovesWhatIsNotKept) {
  AddCut("step12", 3);
  AwaitProgress([](const v1::CutProgress& p) { return p.written(); });
  AddCut("step15", 4);
  AwaitProgress([](const v1::CutProgress& p) { return p.written(); });
  writer_->Keep({});
  const absl::Time deadline = clock_.Now() + kTimeout;
  const std::string gone = DirectoryOf(PathOf("step12"));
  while (FileExists(gone) && clock_.Now() < deadline) clock_.Sleep(absl::Milliseconds(1));
  EXPECT_FALSE(FileExists(gone));
  EXPECT_TRUE(FileExists(PathOf("step15")));
}

TEST_F(PartWriterTest, EndsThoughAPartCannotBeWritten) {
  Break();
  AddCut("step12", 3);
  AwaitProgress([](const v1::CutProgress& p) { return !p.problem().empty(); });
  writer_.reset();
  EXPECT_EQ(weights_.use_count(), 1);
  Mend();
}

}  // namespace
}  // namespace rubato
