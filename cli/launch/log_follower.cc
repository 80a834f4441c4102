#include "cli/launch/log_follower.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

constexpr size_t kPieceBytes = 64 << 10;
// Of one call, so that a process that writes without end does not keep its reader.
constexpr int kPiecesMax = 64;

}  // namespace

LogFollower::LogFollower(std::string path, std::string prefix)
    : path_(std::move(path)), prefix_(std::move(prefix)), offset_(FileBytes(path_).value_or(0)) {}

std::vector<std::string> LogFollower::Read() {
  std::vector<std::string> lines;
  for (int i = 0; i < kPiecesMax; ++i) {
    const absl::StatusOr<std::string> piece = ReadFileRange(path_, offset_, kPieceBytes);
    if (!piece.ok() || piece->empty()) break;
    offset_ += piece->size();
    rest_ += *piece;
    size_t begin = 0;
    for (size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', begin)) {
      lines.push_back(Shown(rest_.substr(begin, end - begin)));
      begin = end + 1;
    }
    rest_.erase(0, begin);
    if (rest_.size() > kPieceBytes) lines.push_back(Shown(std::exchange(rest_, "")));
  }
  return lines;
}

std::vector<std::string> LogFollower::ReadAll() {
  std::vector<std::string> lines = Read();
  if (!rest_.empty()) lines.push_back(Shown(std::exchange(rest_, "")));
  return lines;
}

std::string LogFollower::Shown(const std::string& line) const {
  const size_t last = line.find_last_not_of('\r');
  if (last == std::string::npos) return prefix_;
  const size_t before = line.rfind('\r', last);
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  return absl::StrCat(prefix_, line.substr(begin, last + 1 - begin));
}

}  // namespace rubato
