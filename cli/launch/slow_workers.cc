#include "cli/launch/slow_workers.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/status.h"

namespace rubato {
namespace {

absl::StatusOr<SlowWorker> ParseOne(const std::string& text, uint32_t workers) {
  auto error = [&text](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("--slow: value \"", text, "\": ", why, "; allowed: worker:INDEX:xFACTOR, as in worker:1:x3"));
  };
  std::vector<std::string> parts = absl::StrSplit(text, ':');
  SlowWorker slow;
  if (parts.size() != 3 || parts[0] != "worker") return error("not a worker and a factor");
  if (!absl::SimpleAtoi(parts[1], &slow.index)) return error("the index is not a number");
  if (slow.index >= workers) return error(absl::StrCat("the job has ", workers, " workers, counted from 0"));
  if (!absl::StartsWith(parts[2], "x") || !absl::SimpleAtod(parts[2].substr(1), &slow.factor) ||
      !(slow.factor >= 1 && slow.factor <= 1000)) {
    return error("the factor is not x1 to x1000");
  }
  return slow;
}

}  // namespace

absl::StatusOr<std::vector<SlowWorker>> ParseSlowWorkers(const std::vector<std::string>& texts, uint32_t workers) {
  std::vector<SlowWorker> slowed;
  for (const std::string& text : texts) {
    RUBATO_ASSIGN_OR_RETURN(SlowWorker slow, ParseOne(text, workers));
    for (const SlowWorker& other : slowed) {
      if (other.index == slow.index) {
        return absl::InvalidArgumentError(absl::StrCat("--slow: worker ", slow.index, " is given twice"));
      }
    }
    slowed.push_back(slow);
  }
  return slowed;
}

double SlowFactorOf(uint32_t worker, const std::vector<SlowWorker>& slowed) {
  for (const SlowWorker& slow : slowed) {
    if (slow.index == worker) return slow.factor;
  }
  return 1;
}

std::string DescribeSlowWorkers(const std::vector<SlowWorker>& slowed) {
  return absl::StrJoin(slowed, ", ", [](std::string* out, const SlowWorker& slow) {
    absl::StrAppend(out, "worker ", slow.index, " x", slow.factor);
  });
}

}  // namespace rubato
