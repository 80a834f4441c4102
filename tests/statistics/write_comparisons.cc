// write_comparisons DIRECTORY: made-up comparisons for check_statistics.py, each with the run records that it is of.
// They are the same every time.

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/report/run_record.h"
#include "cli/report/run_summary.h"
#include "cli/report/summary_json.h"
#include "common/random.h"
#include "common/status.h"
#include "common/storage/file.h"
#include "common/storage/run_record_json.h"

namespace rubato {
namespace {

constexpr double kTarget = 0.9;
constexpr double kTrainExamples = 1000;
constexpr int kEpochs = 6;

struct Scenario {
  const char* name;
  uint64_t seeds;
  int modes;
  // How much slower a run may learn than in the epochs that it has; under 1 all runs reach the target.
  double slowness_max;
  // Of the last mode's second run.
  bool fails = false;
};

// Both ways to an interval and to p: every resample and every exchange up to 8 and 16 pairs, and drawn ones above.
constexpr Scenario kScenarios[] = {
    {"one", 1, 2, 0.9},          {"two", 2, 2, 0.9},   {"five", 5, 3, 0.9},
    {"seven", 7, 3, 1.3, true},  {"eight", 8, 2, 1.2}, {"twelve", 12, 4, 1.25, true},
    {"twenty_four", 24, 2, 1.2},
};

constexpr const char* kModes[] = {"sync", "async", "ssp:2", "ssp:8"};

void AddProgress(double epoch, double seconds, v1::Mode mode, std::string* text) {
  v1::RunRecordLine record;
  v1::ProgressLine* line = record.mutable_progress();
  line->set_t(seconds);
  line->set_epoch(epoch);
  line->set_examples(epoch * kTrainExamples);
  line->set_mode(mode);
  line->set_step(epoch * 10);
  for (double share : {0.5, 0.25, 0.25}) line->add_staleness_counts(epoch * 20 * share);
  absl::StrAppend(text, RunRecordJson(record), "\n");
}

void AddEvaluation(double epoch, double seconds, double accuracy, std::string* text) {
  v1::RunRecordLine record;
  v1::EvaluationLine* line = record.mutable_evaluation();
  line->set_t(seconds);
  line->set_epoch(epoch);
  line->set_accuracy(accuracy);
  line->set_final(epoch >= kEpochs);
  absl::StrAppend(text, RunRecordJson(record), "\n");
}

// A run that reaches the target at a random time, or does not, at a random speed.
std::string RunRecordText(const Scenario& scenario, int mode, uint64_t seed) {
  Random random(seed, StreamId(scenario.name, static_cast<uint64_t>(mode)));
  const double epochs_to_target = kEpochs * (0.3 + (scenario.slowness_max - 0.3) * random.Uniform());
  const double seconds_per_epoch = (3.0 + random.Uniform()) / (1 + 0.2 * mode);
  const double late = 0.02 * random.Normal();
  std::string text;
  v1::RunRecordLine start;
  start.mutable_start()->set_train_examples(kTrainExamples);
  absl::StrAppend(&text, RunRecordJson(start), "\n");
  for (int half = 1; half <= 2 * kEpochs; ++half) {
    const double epoch = half / 2.0;
    AddProgress(epoch, epoch * seconds_per_epoch, mode == 0 ? v1::SYNC : v1::ASYNC, &text);
    // A little behind the progress line, so that its updates lie between two of them.
    const double evaluated = std::min<double>(epoch + 0.1, kEpochs);
    const double accuracy =
        kTarget + 0.03 * (evaluated - epochs_to_target) / kEpochs + (half == 2 * kEpochs ? late : 0);
    AddEvaluation(evaluated, evaluated * seconds_per_epoch + 0.05, accuracy, &text);
  }
  v1::RunRecordLine end;
  end.mutable_end()->set_t(kEpochs * seconds_per_epoch + 0.5);
  end.mutable_end()->set_ok(!(scenario.fails && mode + 1 == scenario.modes && seed == 2));
  end.mutable_end()->set_examples_per_second(kTrainExamples / seconds_per_epoch);
  return absl::StrCat(text, RunRecordJson(end), "\n");
}

absl::Status WriteComparison(const Scenario& scenario, const std::string& directory) {
  Comparison comparison;
  comparison.job = scenario.name;
  comparison.target = {.value = kTarget};
  for (int mode = 0; mode < scenario.modes; ++mode) {
    ComparedMode& compared = comparison.modes.emplace_back(ComparedMode{kModes[mode], {}});
    for (uint64_t seed = 1; seed <= scenario.seeds; ++seed) {
      ComparedRun& run = compared.runs.emplace_back();
      run.seed = seed;
      run.directory = absl::StrCat("mode", mode, "-seed", seed);
      const std::string path = JoinPath(directory, run.directory);
      const std::string text = RunRecordText(scenario, mode, seed);
      RUBATO_RETURN_IF_ERROR(MakeDirectories(path));
      RUBATO_RETURN_IF_ERROR(WriteFileAtomically(JoinPath(path, "metrics.jsonl"), text));
      RUBATO_ASSIGN_OR_RETURN(run.record, ReadRunRecord(path));
      run.summary = SummarizeRun(run.record, {.value = kTarget});
    }
  }
  return WriteFileAtomically(JoinPath(directory, "summary.json"), SummaryJson(comparison));
}

absl::Status WriteAll(const std::string& directory) {
  for (const Scenario& scenario : kScenarios) {
    RUBATO_RETURN_IF_ERROR(WriteComparison(scenario, JoinPath(directory, scenario.name)));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace rubato

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_comparisons DIRECTORY\n";
    return 2;
  }
  const absl::Status status = rubato::WriteAll(argv[1]);
  if (!status.ok()) std::cerr << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
