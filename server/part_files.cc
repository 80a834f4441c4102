#include "server/part_files.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/storage/checkpoint.h"
#include "common/storage/cut_record.h"
#include "common/storage/file.h"

namespace rubato::server {

absl::StatusOr<int64_t> PartFiles::Write(Part& part, const std::function<bool()>& cancelled) const {
  absl::Status status = part.unfinished == nullptr ? Begin(part) : absl::OkStatus();
  if (status.ok()) status = WriteChunks(part, cancelled);
  if (status.ok()) status = Finish(part);
  const bool lost = part.unfinished != nullptr && part.unfinished->is_lost();
  const bool let_go = part.written > 0 && part.chunks.front().weights == nullptr;
  if (status.ok() || !let_go) part.unfinished = nullptr;
  if (!status.ok()) {
    if (!lost || !let_go) return status;
    return absl::DataLossError(
        absl::StrCat(part.name, ": the disk has not kept what it had taken: ", status.message()));
  }
  part.chunks.clear();
  const std::string name = CheckpointPartName(v1::TaskId::SERVER, options_.task.index());
  RUBATO_ASSIGN_OR_RETURN(uint64_t bytes, FileBytes(JoinPath(JoinPath(options_.directory, part.name), name + ".data")));
  return static_cast<int64_t>(bytes);
}

absl::Status PartFiles::Begin(Part& part) const {
  if (!IsCheckpointName(part.name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("name: '", part.name, "'; a checkpoint is called step<number>, final or stopped"));
  }
  // Partitions bring them in any order; the same weights shall make the same file.
  std::sort(part.chunks.begin(), part.chunks.end(),
            [](const ChunkSnapshot& a, const ChunkSnapshot& b) { return a.record.chunk() < b.record.chunk(); });
  part.written = 0;
  RUBATO_ASSIGN_OR_RETURN(part.unfinished,
                          CheckpointWriter::Create(JoinPath(options_.directory, part.name), options_.task));
  return absl::OkStatus();
}

absl::Status PartFiles::WriteChunks(Part& part, const std::function<bool()>& cancelled) const {
  for (; part.written < part.chunks.size(); ++part.written) {
    if (cancelled()) return absl::CancelledError(absl::StrCat(part.name, ": given up"));
    ChunkSnapshot& chunk = part.chunks[part.written];
    CheckpointChunk entry;
    entry.record = chunk.record;
    entry.values = chunk.weights->data();
    for (const FloatBuffer::Ptr& slot : chunk.slots) entry.slots.push_back(slot->data());
    RUBATO_RETURN_IF_ERROR(part.unfinished->Add(entry));
    if (!part.unfinished->holds_chunks()) continue;
    chunk.weights = nullptr;
    chunk.slots.clear();
  }
  return absl::OkStatus();
}

absl::Status PartFiles::Finish(Part& part) const {
  v1::CheckpointManifest manifest;
  manifest.set_job_name(options_.job_name);
  uint32_t servers = options_.task.index() + 1;
  for (uint32_t index : options_.servers) {
    servers = std::max(servers, index + 1);
    manifest.add_server_indices(index);
  }
  manifest.set_servers(servers);
  *manifest.mutable_plan() = part.plan;
  if (part.cut.id() != 0) *manifest.mutable_cut() = part.cut;
  return part.unfinished->Finish(std::move(manifest));
}

}  // namespace rubato::server
