#include "cli/launch/task_commands.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

void MakeProgram(const fs::path& path) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << "#!/bin/sh\n";
  fs::permissions(path, fs::perms::owner_all);
}

TEST(TaskCommandsTest, StartsServersWorkersAndEvaluators) {
  v1::JobConfig config;
  config.mutable_cluster()->set_servers(1);
  config.mutable_cluster()->set_workers(2);
  config.mutable_cluster()->set_evaluators(1);
  std::vector<std::string> lines;
  for (const TaskCommand& task : TaskCommands({"c", "s", "w"}, config, "job", "h:1",
                                              {.models = {{1, "x2.5"}}, .networks = {{1, "latency=1ms"}}}, 1)) {
    lines.push_back(TaskFileName(task.id.role(), task.id.index()) + " " + absl::StrJoin(task.argv, " "));
  }
  EXPECT_THAT(
      lines,
      ::testing::ElementsAre(
          "server-0 s --config job --task_index 0 --coordinator h:1 --listen 127.0.0.1:0",
          "worker-0 w --config job --task_index 0 --coordinator h:1 --role worker",
          "worker-1 w --config job --task_index 1 --coordinator h:1 --role worker --slow x2.5 --network latency=1ms",
          "evaluator-0 w --config job --task_index 0 --coordinator h:1 --role evaluator"));
}

TEST(TaskCommandsTest, ACoordinatorThatIsStartedAgainResumesAtItsAddress) {
  TaskCommand command = CoordinatorCommand({"c", "s", "w"}, "job", "file", false);
  EXPECT_EQ(absl::StrJoin(command.argv, " "), "c --config job --listen 127.0.0.1:0 --port_file file");
  ResumeCoordinatorAt("127.0.0.1:4711", &command);
  const std::string again = "c --config job --listen 127.0.0.1:4711 --port_file file --resume";
  EXPECT_EQ(absl::StrJoin(command.argv, " "), again);
  ResumeCoordinatorAt("127.0.0.1:4711", &command);
  EXPECT_EQ(absl::StrJoin(command.argv, " "), again);
}

// What was stopped goes on when somebody says so, and not because its coordinator was lost.
TEST(TaskCommandsTest, AnEndedJobIsResumedOnce) {
  TaskCommand command = CoordinatorCommand({"c", "s", "w"}, "job", "file", true);
  EXPECT_EQ(command.argv.back(), "--resume_ended");
  ResumeCoordinatorAt("127.0.0.1:4711", &command);
  EXPECT_EQ(absl::StrJoin(command.argv, " "), "c --config job --listen 127.0.0.1:4711 --port_file file --resume");
}

TEST(TaskCommandsTest, WorkersAndThenEvaluatorsTakeTurnsWithGpus) {
  v1::JobConfig config;
  config.mutable_cluster()->set_servers(1);
  config.mutable_cluster()->set_workers(2);
  config.mutable_cluster()->set_evaluators(1);
  config.mutable_training()->set_gpus(2);
  std::vector<std::string> lines;
  for (const TaskCommand& task : TaskCommands({"c", "s", "w"}, config, "job", "h:1", {}, 6)) {
    lines.push_back(task.argv.back());
  }
  EXPECT_THAT(lines, ::testing::ElementsAre("127.0.0.1:0", "training.device_index=0", "training.device_index=2",
                                            "training.device_index=4"));
}

TEST(TaskCommandsTest, AClientsJobHasServersAndSomebodysCommands) {
  v1::JobConfig config;
  config.mutable_cluster()->set_servers(1);
  const std::vector<TaskCommand> local = ServerCommands({"c", "s", ""}, config, "job", "h:1", "");
  ASSERT_EQ(local.size(), 1u);
  EXPECT_EQ(absl::StrJoin(local[0].argv, " "), "s --config job --task_index 0 --coordinator h:1 --listen 127.0.0.1:0");
  EXPECT_EQ(absl::StrJoin(ServerCommands({"c", "s", ""}, config, "job", "h:1", "node7")[0].argv, " "),
            "s --config job --task_index 0 --coordinator h:1 --listen 0.0.0.0:0 --advertise_host node7");
  WorkerCommand command;
  command.argv = {"/bin/python", "train.py"};
  const std::vector<TaskCommand> workers =
      ClientCommands(command, 2, "h:1", {.models = {{1, "x2.5"}}, .networks = {{1, "latency=1ms"}}});
  ASSERT_EQ(workers.size(), 2u);
  EXPECT_EQ(TaskFileName(workers[1].id.role(), workers[1].id.index()), "worker-1");
  EXPECT_EQ(workers[1].argv, command.argv);
  EXPECT_THAT(workers[0].variables, ::testing::Not(::testing::Contains(HasSubstr("RUBATO_SLOW"))));
  EXPECT_THAT(workers[1].variables,
              ::testing::IsSupersetOf({"RUBATO_RANK=1", "RUBATO_SIZE=2", "RUBATO_LOCAL_RANK=1", "RUBATO_LOCAL_SIZE=2",
                                       "RUBATO_COORDINATOR=h:1", "RUBATO_SLOW=x2.5", "RUBATO_NETWORK=latency=1ms"}));
}

TEST(TaskCommandsTest, FindsProgramsInTheBuildsLayoutAndInOneFolder) {
  fs::path root = fs::path(::testing::TempDir()) / "layout";
  for (const char* name : {"coordinator", "server", "worker"}) {
    MakeProgram(root / "bin" / name / name);
    MakeProgram(root / "flat" / name);
  }
  std::string build = (root / "bin/cli/command/rubato").string();
  absl::StatusOr<Binaries> binaries = FindBinaries("", build);
  ASSERT_TRUE(binaries.ok()) << binaries.status();
  EXPECT_TRUE(fs::equivalent(binaries->server, root / "bin/server/server"));
  binaries = FindBinaries("", (root / "flat/rubato").string());
  ASSERT_TRUE(binaries.ok()) << binaries.status();
  EXPECT_EQ(binaries->worker, (root / "flat/worker").string());
  binaries = FindBinaries((root / "flat").string(), build);
  ASSERT_TRUE(binaries.ok()) << binaries.status();
  EXPECT_EQ(binaries->coordinator, (root / "flat/coordinator").string());
}

TEST(TaskCommandsTest, NamesTheMissingProgram) {
  absl::Status status = FindBinaries("/nonexistent", "").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"coordinator\" in /nonexistent"));
}

}  // namespace
}  // namespace rubato
