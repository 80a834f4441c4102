#include "cli/launch/slow_workers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/status.h"
#include "common/straggler/straggler_trace.h"

namespace rubato {
namespace {

absl::StatusOr<SlowWorker> ParseOne(const std::string& text, uint32_t workers) {
  const std::string value = absl::StrCat("--slow: value \"", text, "\"");
  const auto error = [&value](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(
        value, ": ", why, "; allowed: worker:INDEX:MODEL or worker:*:MODEL, as in worker:1:x3+sleep=30ms"));
  };
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 2));
  SlowWorker slow;
  if (parts.size() != 3 || parts[0] != "worker") return error("not a worker and a model");
  if (parts[1] != "*") {
    if (!absl::SimpleAtoi(parts[1], &slow.index.emplace())) return error("the index is not a number");
    if (*slow.index >= workers) return error(absl::StrCat("the job has ", workers, " workers, counted from 0"));
  }
  const absl::StatusOr<StragglerModel> model = LoadStraggler(parts[2]);
  if (!model.ok()) return Annotate(model.status(), value);
  slow.model = FormatStraggler(*model);
  return slow;
}

// A worker's own entry comes before that of all.
std::vector<SlowWorker> Sorted(std::vector<SlowWorker> slowed) {
  std::stable_partition(slowed.begin(), slowed.end(), [](const SlowWorker& slow) { return slow.index.has_value(); });
  return slowed;
}

}  // namespace

absl::StatusOr<std::vector<SlowWorker>> ParseSlowWorkers(const std::vector<std::string>& texts, uint32_t workers) {
  std::vector<SlowWorker> slowed;
  for (const std::string& text : texts) {
    RUBATO_ASSIGN_OR_RETURN(SlowWorker slow, ParseOne(text, workers));
    for (const SlowWorker& other : slowed) {
      if (other.index != slow.index) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("--slow: value \"", text,
                       "\": ", slow.index.has_value() ? absl::StrCat("worker ", *slow.index, " is") : "all workers are",
                       " given twice; allowed: one model, with terms joined by +"));
    }
    slowed.push_back(std::move(slow));
  }
  return Sorted(std::move(slowed));
}

std::string SlowModelOf(uint32_t worker, const std::vector<SlowWorker>& slowed) {
  for (const SlowWorker& slow : slowed) {
    if (slow.index.value_or(worker) == worker) return slow.model;
  }
  return "";
}

std::string DescribeSlowWorkers(const std::vector<SlowWorker>& slowed) {
  const std::string all = slowed.size() > 1 ? "all others" : "all workers";
  return absl::StrJoin(slowed, ", ", [&all](std::string* out, const SlowWorker& slow) {
    absl::StrAppend(out, slow.index.has_value() ? absl::StrCat("worker ", *slow.index) : all, " ",
                    slow.model.empty() ? "x1" : slow.model);
  });
}

}  // namespace rubato
