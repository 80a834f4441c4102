#include "cli/launch/worker_command.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

void MakeFile(const fs::path& path) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << "\n";
}

TEST(WorkerCommandTest, FindsTheProgramInThePath) {
  const absl::StatusOr<WorkerCommand> command = MakeWorkerCommand({"sh", "-c", "true"}, "COMMAND", "/nowhere/rubato");
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_THAT(command->argv, ElementsAre(AllOf(StartsWith("/"), HasSubstr("/sh")), "-c", "true"));
  EXPECT_EQ(command->library, "");
  EXPECT_EQ(command->sidecar, "");
}

TEST(WorkerCommandTest, NamesWhatIsNoProgram) {
  absl::Status status = MakeWorkerCommand({}, "COMMAND", "").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("COMMAND: no command is given; allowed: "));
  status = MakeWorkerCommand({"no-such-program"}, "--command", "").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "--command: no program \"no-such-program\" in the PATH");
}

TEST(WorkerCommandTest, FindsTheClientInOneFolderAndInTheBuildsLayout) {
  const fs::path root = fs::path(::testing::TempDir()) / "client_layout";
  fs::remove_all(root);
  MakeFile(root / "flat/librubato_client.so");
  MakeFile(root / "flat/rubato-sidecar");
  MakeFile(root / "bin/client/librubato_client.so");
  MakeFile(root / "bin/client/rubato-sidecar");
  fs::create_directories(root / "bin/cli/command");
  const absl::StatusOr<WorkerCommand> flat = MakeWorkerCommand({"sh"}, "COMMAND", (root / "flat/rubato").string());
  ASSERT_TRUE(flat.ok()) << flat.status();
  EXPECT_EQ(flat->library, (root / "flat/librubato_client.so").string());
  EXPECT_EQ(flat->sidecar, (root / "flat/rubato-sidecar").string());
  const absl::StatusOr<WorkerCommand> built =
      MakeWorkerCommand({"sh"}, "COMMAND", (root / "bin/cli/command/rubato").string());
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(built->library, (root / "bin/client/librubato_client.so").string());
  EXPECT_EQ(built->sidecar, (root / "bin/client/rubato-sidecar").string());
}

TEST(WorkerCommandTest, TellsAWorkerWhichItIs) {
  WorkerCommand command;
  command.variables = {"RUBATO_SEED=7"};
  EXPECT_THAT(WorkerVariables(command, "h:1", {5, 8, 1, 4}),
              ElementsAre("RUBATO_COORDINATOR=h:1", "RUBATO_RANK=5", "RUBATO_SIZE=8", "RUBATO_LOCAL_RANK=1",
                          "RUBATO_LOCAL_SIZE=4", "PYTHONUNBUFFERED=1", "RUBATO_SEED=7"));
  command.library = "/lib";
  command.sidecar = "/sidecar";
  EXPECT_THAT(WorkerVariables(command, "h:1", {}),
              AllOf(Contains("RUBATO_LIBRARY=/lib"), Contains("RUBATO_SIDECAR=/sidecar")));
}

TEST(WorkerCommandTest, SharesTheCoresUnlessSomebodyHasSaidOtherwise) {
  WorkerCommand command;
  unsetenv("OMP_NUM_THREADS");
  ShareCores(1000000, &command);
  EXPECT_THAT(command.variables, ElementsAre("OMP_NUM_THREADS=1"));
  EXPECT_EQ(command.threads, 1u);
  command.variables.clear();
  setenv("OMP_NUM_THREADS", "3", 1);
  ShareCores(2, &command);
  EXPECT_THAT(command.variables, ElementsAre());
  EXPECT_EQ(command.threads, 3u);
  setenv("OMP_NUM_THREADS", "4,2", 1);
  ShareCores(2, &command);
  EXPECT_EQ(command.threads, 0u);
}

TEST(SplitCommandTest, TakesQuotesAndBackslashesAsAShellDoes) {
  const auto words = [](const std::string& line) { return SplitCommand(line, "--command").value(); };
  EXPECT_THAT(words("python train.py"), ElementsAre("python", "train.py"));
  EXPECT_THAT(words("  a\t'b c'd \"e \\\"f\\\" \\n\" g\\ h '' "), ElementsAre("a", "b cd", "e \"f\" \\n", "g h", ""));
  EXPECT_THAT(words("'a\\b'"), ElementsAre("a\\b"));
  EXPECT_THAT(words("a\\"), ElementsAre("a\\"));
}

TEST(SplitCommandTest, RefusesAnOpenQuoteAndNothing) {
  for (const char* line : {"python 'train.py", "a \"b", "'", "", "  "}) {
    const absl::Status status = SplitCommand(line, "--command").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_TRUE(absl::StartsWith(status.message(), std::string("--command: value \"") + line + "\"")) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("allowed: "));
  }
}

}  // namespace
}  // namespace rubato
