#include "common/storage/checkpoint_restorer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "common/storage/cut_record.h"
#include "common/storage/file.h"
#include "common/storage/safetensors_file.h"
#include "common/task.h"

namespace rubato {

void CheckpointRestorer::Add(Slice slice) {
  of_tensor_[slice.tensor].push_back(slices_.size());
  slices_.push_back(std::move(slice));
  filled_.push_back(0);
}

absl::Status CheckpointRestorer::ReadServers(const std::string& directory, uint64_t cut_id, bool is_complete) {
  std::fill(filled_.begin(), filled_.end(), 0);
  absl::Status missing;
  RUBATO_ASSIGN_OR_RETURN(const std::vector<uint32_t> servers,
                          ServersOfCheckpoint(directory, cut_id, cut_id == 0 && !is_complete ? nullptr : &missing));
  for (uint32_t server : servers) {
    RUBATO_ASSIGN_OR_RETURN(CheckpointPart part, ReadCheckpointPart(directory, v1::TaskId::SERVER, server, cut_id));
    RUBATO_RETURN_IF_ERROR(Annotate(Take(part), directory));
  }
  const absl::Status filled = CheckFilled(directory);
  return filled.ok() || missing.ok() ? filled : missing;
}

bool CheckpointRestorer::Lacks(const v1::CheckpointManifest& manifest) const {
  for (const v1::ChunkRecord& chunk : manifest.chunks()) {
    const auto found = of_tensor_.find(chunk.tensor());
    if (found == of_tensor_.end()) continue;
    for (size_t index : found->second) {
      const Slice& slice = slices_[index];
      const bool overlaps =
          chunk.offset() < slice.offset + slice.length && slice.offset < chunk.offset() + chunk.length();
      if (overlaps && filled_[index] < slice.length) return true;
    }
  }
  return false;
}

absl::Status CheckpointRestorer::ReadSafetensors(const std::string& path) {
  RUBATO_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(path));
  for (Slice& slice : slices_) {
    RUBATO_RETURN_IF_ERROR(file.Read(slice.tensor, slice.offset, slice.length, slice.values));
    slice.updates = 0;
    slice.compensated = 0;
    slice.version = 0;
  }
  return absl::OkStatus();
}

absl::Status CheckpointRestorer::Take(const CheckpointPart& part) {
  for (const v1::ChunkRecord& chunk : part.manifest.chunks()) RUBATO_RETURN_IF_ERROR(TakeChunk(part, chunk));
  return absl::OkStatus();
}

absl::Status CheckpointRestorer::TakeChunk(const CheckpointPart& part, const v1::ChunkRecord& chunk) {
  const auto found = of_tensor_.find(chunk.tensor());
  if (found == of_tensor_.end()) return absl::OkStatus();
  for (size_t index : found->second) {
    Slice& slice = slices_[index];
    if (!std::equal(slice.shape.begin(), slice.shape.end(), chunk.shape().begin(), chunk.shape().end())) {
      return absl::FailedPreconditionError(absl::StrCat(slice.tensor, ": shape [", absl::StrJoin(chunk.shape(), ", "),
                                                        "], the job's is [", absl::StrJoin(slice.shape, ", "), "]"));
    }
    if (chunk.slots_at_size() != static_cast<int>(slice.slots.size())) {
      return absl::FailedPreconditionError(absl::StrCat(
          slice.tensor, ": ", chunk.slots_at_size(), " optimizer slots, the job's optimizer.algorithm has ",
          slice.slots.size(), ", with those of consistency.compensation"));
    }
    const int64_t begin = std::max(slice.offset, chunk.offset());
    const int64_t end = std::min(slice.offset + slice.length, chunk.offset() + chunk.length());
    if (begin >= end) continue;
    const uint64_t skipped = sizeof(float) * static_cast<uint64_t>(begin - chunk.offset());
    part.Copy(chunk.values_at() + skipped, end - begin, slice.values + (begin - slice.offset));
    for (size_t slot = 0; slot < slice.slots.size(); ++slot) {
      part.Copy(chunk.slots_at(static_cast<int>(slot)) + skipped, end - begin,
                slice.slots[slot] + (begin - slice.offset));
    }
    slice.updates = std::max(slice.updates, chunk.updates());
    slice.compensated = std::max(slice.compensated, chunk.compensated());
    slice.version = std::max(slice.version, chunk.version());
    filled_[index] += end - begin;
  }
  return absl::OkStatus();
}

absl::Status CheckpointRestorer::CheckFilled(const std::string& directory) const {
  for (size_t i = 0; i < slices_.size(); ++i) {
    if (filled_[i] == slices_[i].length) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(directory, ": of ", slices_[i].tensor, ", elements ", slices_[i].offset, " to ",
                     slices_[i].offset + slices_[i].length - 1, ", it has ", filled_[i], " of ", slices_[i].length));
  }
  return absl::OkStatus();
}

}  // namespace rubato
