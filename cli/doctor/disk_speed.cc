#include "cli/doctor/disk_speed.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPieceBytes = int64_t{1} << 20;

fs::path NearestThere(const std::string& directory) {
  std::error_code error;
  fs::path path = fs::absolute(directory.empty() ? "." : directory, error);
  while (!fs::is_directory(path, error) && path.has_relative_path()) path = path.parent_path();
  return path;
}

absl::Status WriteAll(const std::string& path, int64_t bytes) {
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<FileWriter> file, FileWriter::Create(path, FileWriter::kReplace));
  // Not zeros, which some file systems do not write.
  std::string piece(kPieceBytes, '\0');
  for (size_t i = 0; i < piece.size(); ++i) piece[i] = static_cast<char>(i * 2654435761u >> 13);
  for (int64_t left = bytes; left > 0; left -= kPieceBytes) {
    RUBATO_RETURN_IF_ERROR(file->Write(piece.data(), static_cast<size_t>(std::min(left, kPieceBytes))));
  }
  RUBATO_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

}  // namespace

absl::StatusOr<DiskFacts> MeasureDisk(const std::string& directory, int64_t bytes, const Clock* clock) {
  const fs::path there = NearestThere(directory);
  std::error_code error;
  const fs::space_info space = fs::space(there, error);
  if (error) return absl::UnavailableError(absl::StrCat(there.string(), ": ", error.message()));
  DiskFacts facts = {there.string(), 0, static_cast<int64_t>(space.available)};
  const std::string path = JoinPath(facts.directory, absl::StrCat(".rubato-doctor-", getpid()));
  const absl::Time begin = clock->Now();
  absl::Status status = WriteAll(path, bytes);
  const absl::Duration took = clock->Now() - begin;
  status.Update(RemoveFile(path));
  if (!status.ok()) return status;
  facts.bytes_per_second = static_cast<double>(bytes) / std::max(absl::ToDoubleSeconds(took), 1e-9);
  return facts;
}

}  // namespace rubato
