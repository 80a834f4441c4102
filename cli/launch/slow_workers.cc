#include "cli/launch/slow_workers.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/network_link/link_model.h"
#include "common/status.h"
#include "common/straggler/straggler_trace.h"

namespace rubato {
namespace {

using Setting = SlowWorkers::Setting;

// A flag's values.
struct Flag {
  std::string name;
  // Of a value.
  std::string example;
  // What one worker may have.
  std::string once;
  // Reads a value and writes it again.
  std::function<absl::StatusOr<std::string>(const std::string&)> read;
};

absl::StatusOr<Setting> ParseOne(const Flag& flag, const std::string& text, uint32_t workers) {
  const std::string value = absl::StrCat(flag.name, ": value \"", text, "\"");
  const auto error = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(
        value, ": ", why, "; allowed: worker:INDEX:MODEL or worker:*:MODEL, as in worker:1:", flag.example));
  };
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 2));
  Setting setting;
  if (parts.size() != 3 || parts[0] != "worker") return error("not a worker and a model");
  if (parts[1] != "*") {
    if (!absl::SimpleAtoi(parts[1], &setting.index.emplace())) return error("the index is not a number");
    if (*setting.index >= workers) return error(absl::StrCat("the job has ", workers, " workers, counted from 0"));
  }
  absl::StatusOr<std::string> read = flag.read(parts[2]);
  if (!read.ok()) return Annotate(read.status(), value);
  setting.value = *std::move(read);
  return setting;
}

absl::StatusOr<std::vector<Setting>> Parse(const Flag& flag, const std::vector<std::string>& texts, uint32_t workers) {
  std::vector<Setting> settings;
  for (const std::string& text : texts) {
    RUBATO_ASSIGN_OR_RETURN(Setting setting, ParseOne(flag, text, workers));
    for (const Setting& other : settings) {
      if (other.index != setting.index) continue;
      const std::string who =
          setting.index.has_value() ? absl::StrCat("worker ", *setting.index, " is") : "all workers are";
      return absl::InvalidArgumentError(
          absl::StrCat(flag.name, ": value \"", text, "\": ", who, " given twice; allowed: ", flag.once));
    }
    settings.push_back(std::move(setting));
  }
  // A worker's own setting comes before that of all.
  std::stable_partition(settings.begin(), settings.end(), [](const Setting& one) { return one.index.has_value(); });
  return settings;
}

std::string Describe(const std::vector<Setting>& settings, absl::string_view before, absl::string_view none) {
  const std::string all = settings.size() > 1 ? "all others" : "all workers";
  return absl::StrJoin(settings, ", ", [&](std::string* out, const Setting& one) {
    absl::StrAppend(out, one.index.has_value() ? absl::StrCat("worker ", *one.index) : all, " ");
    absl::StrAppend(out, one.value.empty() ? std::string(none) : absl::StrCat(before, one.value));
  });
}

}  // namespace

absl::StatusOr<SlowWorkers> ParseSlowWorkers(const std::vector<std::string>& slow,
                                             const std::vector<std::string>& network, uint32_t workers) {
  const Flag models = {"--slow", "x3+sleep=30ms", "one model, with terms joined by +",
                       [](const std::string& text) -> absl::StatusOr<std::string> {
                         RUBATO_ASSIGN_OR_RETURN(const StragglerModel model, LoadStraggler(text));
                         return FormatStraggler(model);
                       }};
  const Flag networks = {"--network", "latency=10ms,rate=100mbit", "one link",
                         [](const std::string& text) -> absl::StatusOr<std::string> {
                           RUBATO_ASSIGN_OR_RETURN(const LinkModel link, ParseLink(text));
                           return FormatLink(link);
                         }};
  SlowWorkers slowed;
  RUBATO_ASSIGN_OR_RETURN(slowed.models, Parse(models, slow, workers));
  RUBATO_ASSIGN_OR_RETURN(slowed.networks, Parse(networks, network, workers));
  return slowed;
}

std::string SettingOf(uint32_t worker, const std::vector<Setting>& settings) {
  for (const Setting& one : settings) {
    if (one.index.value_or(worker) == worker) return one.value;
  }
  return "";
}

std::string DescribeSlowWorkers(const SlowWorkers& slowed) {
  std::vector<std::string> parts;
  if (!slowed.models.empty()) parts.push_back(Describe(slowed.models, "", "x1"));
  if (!slowed.networks.empty()) parts.push_back(Describe(slowed.networks, "behind ", "behind no link"));
  return absl::StrJoin(parts, ", ");
}

}  // namespace rubato
