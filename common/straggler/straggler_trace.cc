#include "common/straggler/straggler_trace.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{64} << 20;
constexpr double kMaxSeconds = 600;

absl::StatusOr<std::vector<double>> ReadSeconds(const std::string& path) {
  const auto error = [&path](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat("trace ", path, what...));
  };
  RUBATO_ASSIGN_OR_RETURN(const uint64_t bytes, FileBytes(path));
  if (bytes > kMaxBytes) return error(" is longer than 64 MiB");
  RUBATO_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  if (lines.back().empty()) lines.pop_back();
  if (lines.empty()) return error(" is empty; allowed: a number of seconds in each line");
  std::vector<double> seconds(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    // Not a NaN either.
    if (absl::SimpleAtod(lines[i], &seconds[i]) && seconds[i] >= 0 && seconds[i] <= kMaxSeconds) continue;
    return error(", line ", i + 1, ": \"", lines[i].substr(0, 40), "\"; allowed: seconds, 0 to 600");
  }
  return seconds;
}

}  // namespace

absl::StatusOr<StragglerModel> LoadStraggler(absl::string_view text) {
  RUBATO_ASSIGN_OR_RETURN(StragglerModel model, ParseStraggler(text));
  if (!model.trace.has_value()) return model;
  RUBATO_ASSIGN_OR_RETURN(std::vector<double> seconds, ReadSeconds(model.trace->path));
  model.trace->seconds = std::make_shared<const std::vector<double>>(std::move(seconds));
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(model.trace->path, error);
  if (!error) model.trace->path = absolute.lexically_normal().string();
  return model;
}

absl::StatusOr<StragglerModel> LoadStragglerOf(absl::string_view name, absl::string_view text) {
  if (text.empty()) return StragglerModel();
  absl::StatusOr<StragglerModel> model = LoadStraggler(text);
  if (model.ok()) return model;
  return Annotate(model.status(), absl::StrCat(name, ": value \"", text, "\""));
}

}  // namespace rubato
