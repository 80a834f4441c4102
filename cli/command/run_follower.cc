#include "cli/command/run_follower.h"

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/storage/file.h"
#include "common/storage/run_record_json.h"

namespace rubato {
namespace {

// Longer than any line: one of ten thousand workers has some 3 MB.
constexpr size_t kPieceBytes = 16 << 20;

}  // namespace

RunFollower::RunFollower(const std::string& name, const std::string& directory)
    : directory_(directory),
      path_(JoinPath(directory, "metrics.jsonl")),
      feed_({.name = name,
             .directory = directory,
             .config_text = ReadFile(JoinPath(directory, "job.textproto")).value_or("")}) {}

absl::Status RunFollower::Read() {
  for (;;) {
    RUBATO_ASSIGN_OR_RETURN(const std::string piece, ReadFileRange(path_, offset_, kPieceBytes));
    absl::string_view text = piece;
    for (size_t newline; (newline = text.find('\n')) != absl::string_view::npos;) {
      const absl::StatusOr<v1::RunRecordLine> line = ParseRunRecordJson(text.substr(0, newline));
      const uint64_t at = offset_;
      offset_ += newline + 1;
      text.remove_prefix(newline + 1);
      if (!line.ok()) return Annotate(line.status(), absl::StrCat(path_, ": byte ", at));
      feed_.Add(*line);
    }
    if (piece.size() < kPieceBytes) return absl::OkStatus();
  }
}

}  // namespace rubato
