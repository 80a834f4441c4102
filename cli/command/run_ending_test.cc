#include "cli/command/run_ending.h"

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

class RunEndingTest : public ::testing::Test {
 protected:
  RunEndingTest() : directory_(fs::path(::testing::TempDir()) / "run") {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }

  void Write(const std::string& name, const std::string& text) {
    fs::create_directories((directory_ / name).parent_path());
    std::ofstream(directory_ / name) << text;
  }

  void WriteRecord(const std::string& end) {
    Write("metrics.jsonl", R"({"start":{"job":"j","mode":"SYNC","staleness_bound":0,"workers":1,"servers":2,"seed":1,)"
                           R"("batch_size":1,"train_examples":1,"epochs":1,"target_accuracy":0}})"
                           "\n" +
                               end);
  }

  void WriteCheckpoint(const std::string& name, int servers) {
    for (int i = 0; i < servers; ++i) {
      Write("checkpoints/" + name + "/server-" + std::to_string(i) + ".manifest", "x");
    }
  }

  static std::string End(const std::string& ok, const std::string& error) {
    return R"({"end":{"t":75.0,"ok":)" + ok + R"(,"error":")" + error +
           R"(","examples":1,"examples_per_second":1,"non_finite":0,"overflows":0}})" + "\n";
  }

  std::string Describe() const {
    const std::optional<RunEnding> ending = ReadRunEnding(directory_.string());
    return ending.has_value() ? DescribeEnding(*ending, "D") : "no end";
  }

  const fs::path directory_;
};

TEST_F(RunEndingTest, ARunWithoutAnEndHasNone) {
  EXPECT_EQ(Describe(), "no end");
  WriteRecord("");
  EXPECT_EQ(Describe(), "no end");
}

TEST_F(RunEndingTest, SaysWhenARunWasDoneAndWhereItsWeightsAre) {
  WriteRecord(End("true", ""));
  WriteCheckpoint("final", 2);
  const std::string weights = (directory_ / "checkpoints/final").string();
  EXPECT_THAT(Describe(),
              MatchesRegex("The run in D is done: it ended on [0-9-]+ at [0-9:]+, 1 min 15 s after training "
                           "began\nIts weights are in " +
                           weights));
}

TEST_F(RunEndingTest, SaysHowToGoOnFromARunThatWasStopped) {
  WriteRecord(End("false", "stopped by the operator at 10.0.0.9: lunch"));
  WriteCheckpoint("stopped", 2);
  const std::string weights = (directory_ / "checkpoints/stopped").string();
  EXPECT_THAT(Describe(), HasSubstr("The run in D was stopped on "));
  const std::string way_on = "Its weights are in " + weights +
                             "; go on with rubato train CONFIG --resume, or begin another job with them: --set "
                             "training.start_from=" +
                             weights;
  EXPECT_THAT(Describe(), HasSubstr(": stopped by the operator at 10.0.0.9: lunch\n" + way_on));
  const absl::Status outcome = WithWayOn(absl::AbortedError("stopped"), directory_.string());
  EXPECT_EQ(outcome.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(outcome.message(), "stopped\n" + way_on);
  EXPECT_TRUE(WithWayOn(absl::OkStatus(), directory_.string()).ok());
}

TEST_F(RunEndingTest, ARunOfClientsGoesOnWithTheirCommand) {
  WriteRecord(End("false", "stopped by the operator"));
  WriteCheckpoint("stopped", 2);
  std::ofstream(directory_ / "job.textproto") << "name: 'train' model { manifest { groups: 1 } } data { client {} }";
  EXPECT_THAT(Describe(), HasSubstr("; go on with rubato run --run_directory=" + directory_.string() +
                                    " --resume -- COMMAND, or begin another"));
}

TEST_F(RunEndingTest, ACheckpointThatIsNotWholeIsNoWayOn) {
  WriteRecord(End("false", "stopped by the operator"));
  WriteCheckpoint("stopped", 1);
  EXPECT_THAT(Describe(), HasSubstr("The run in D failed on "));
  EXPECT_THAT(Describe(), HasSubstr("\nIt has left no weights"));
  EXPECT_EQ(WithWayOn(absl::AbortedError("stopped"), directory_.string()).message(), "stopped");
}

TEST_F(RunEndingTest, ARunThatGoesOnAfterItsEndHasNone) {
  WriteRecord(End("false", "stopped by the operator") + "{\"member\":{\"t\":80.0}}\n");
  EXPECT_EQ(Describe(), "no end");
  WriteRecord(End("false", "stopped by the operator") + "{\"member\":{\"t\":8");
  EXPECT_EQ(Describe(), "no end");
}

TEST_F(RunEndingTest, ACheckpointWithItsRecordIsWholeWhoeverHasWrittenIt) {
  WriteRecord(End("false", "stopped by the operator"));
  Write("checkpoints/stopped/cut", "x");
  EXPECT_THAT(Describe(), HasSubstr("The run in D was stopped on "));
}

TEST_F(RunEndingTest, CheckpointsMayBeElsewhere) {
  WriteRecord(End("false", "stopped by the operator"));
  Write("elsewhere/stopped/cut", "x");
  EXPECT_THAT(Describe(), HasSubstr("It has left no weights"));
  Write("job.textproto", "checkpoint { directory: '" + (directory_ / "elsewhere").string() + "' }");
  EXPECT_THAT(Describe(), HasSubstr("Its weights are in " + (directory_ / "elsewhere/stopped").string()));
}

TEST_F(RunEndingTest, ARunMayFailAfterAStopThatItHasSurvived) {
  WriteRecord(End("false", "server 1 is lost"));
  WriteCheckpoint("stopped", 2);
  EXPECT_THAT(Describe(), HasSubstr("The run in D failed on "));
  EXPECT_EQ(WithWayOn(absl::AbortedError("lost"), directory_.string()).message(), "lost");
}

TEST_F(RunEndingTest, ARunMayEndBeforeTraining) {
  Write("metrics.jsonl", End("false", "server 0 has not come"));
  EXPECT_THAT(Describe(), HasSubstr(", before training began: server 0 has not come"));
  EXPECT_THAT(Describe(), Not(HasSubstr("min")));
}

}  // namespace
}  // namespace rubato
