#include "worker/ps_client/cut_part.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/config/checkpoint_directory.h"
#include "common/status.h"
#include "common/storage/cut_record.h"
#include "common/storage/file.h"

namespace rubato::worker {
namespace {

// Has the part brought from a server that keeps a copy. False: nobody has one.
absl::StatusOr<bool> Fetch(const CutPartSource& source) {
  const absl::Status fetched = source.peers->Fetch(
      source.cut->name(), source.cut->id(), v1::TaskId::WORKER, source.index,
      [](const v1::CheckpointManifest&) { return true; }, source.cancelled);
  if (absl::IsNotFound(fetched)) return false;
  RUBATO_RETURN_IF_ERROR(fetched);
  return true;
}

}  // namespace

absl::StatusOr<bool> ReadCutPart(const CutPartSource& source, WorkerPart* part) {
  RUBATO_RETURN_IF_ERROR(CheckCutName(source.cut->name()));
  const std::string from = JoinPath(CheckpointDirectory(*source.config), source.cut->name());
  RUBATO_ASSIGN_OR_RETURN(bool read, ReadWorkerPart(from, source.index, source.cut, part));
  if (!read && source.peers != nullptr) {
    RUBATO_ASSIGN_OR_RETURN(const bool fetched, Fetch(source));
    if (fetched) {
      RUBATO_ASSIGN_OR_RETURN(read, ReadWorkerPart(from, source.index, source.cut, part));
    }
  }
  if (read) source.log->Info(absl::StrCat("goes on with what it kept in ", from));
  return read;
}

}  // namespace rubato::worker
