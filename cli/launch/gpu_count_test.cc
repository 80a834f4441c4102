#include "cli/launch/gpu_count.h"

#include <signal.h>

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class GpuCountTest : public ::testing::Test {
 protected:
  GpuCountTest() : directory_(fs::path(::testing::TempDir()) / "gpu_count") {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
    signals_ = *StopSignals::Create();
  }

  // With a worker that is this shell script.
  absl::StatusOr<uint32_t> Count(const std::string& script, absl::Duration timeout = absl::Minutes(1)) {
    const fs::path worker = directory_ / "worker";
    std::ofstream(worker) << "#!/bin/sh\n" << script << "\n";
    fs::permissions(worker, fs::perms::owner_all);
    return CountGpus(worker.string(), (directory_ / "log").string(), timeout, clock_, signals_.get());
  }

  const fs::path directory_;
  RealClock clock_;
  std::unique_ptr<StopSignals> signals_;
};

TEST_F(GpuCountTest, IsWhatTheWorkerSays) {
  const absl::StatusOr<uint32_t> gpus = Count("[ \"$*\" = --count_gpus ] && echo 3");
  ASSERT_TRUE(gpus.ok()) << gpus.status();
  EXPECT_EQ(*gpus, 3);
  EXPECT_FALSE(fs::exists(directory_ / "log"));
}

TEST_F(GpuCountTest, GivesTheLastWordsOfAWorkerThatCannotTell) {
  const absl::Status status = Count("echo unknown option >&2; exit 2").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--count_gpus ended with exit status 2: unknown option"));
  EXPECT_EQ(Count("echo some").status().code(), absl::StatusCode::kAborted);
}

TEST_F(GpuCountTest, DoesNotWaitForADriverThatHangs) {
  const absl::Status status = Count("exec sleep 1000", absl::Milliseconds(10)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(status.message(), "GPUs were not counted within 10ms (does nvidia-smi answer?)");
}

TEST_F(GpuCountTest, ASignalEndsTheWait) {
  const absl::Status status = Count("kill -TERM $PPID; exec sleep 1000").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace rubato
