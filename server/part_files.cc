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

absl::StatusOr<int64_t> PartFiles::Write(const Part& part, const std::function<bool()>& cancelled) const {
  if (!IsCheckpointName(part.name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("name: '", part.name, "'; a checkpoint is called step<number>, final or stopped"));
  }
  const std::string directory = JoinPath(options_.directory, part.name);
  RUBATO_ASSIGN_OR_RETURN(auto writer, CheckpointWriter::Create(directory, options_.task));
  // Partitions bring them in any order; the same weights shall make the same file.
  std::vector<const ChunkSnapshot*> chunks;
  for (const ChunkSnapshot& chunk : part.chunks) chunks.push_back(&chunk);
  std::sort(chunks.begin(), chunks.end(),
            [](const ChunkSnapshot* a, const ChunkSnapshot* b) { return a->record.chunk() < b->record.chunk(); });
  for (const ChunkSnapshot* chunk : chunks) {
    if (cancelled()) return absl::CancelledError(absl::StrCat(directory, ": given up"));
    CheckpointChunk entry;
    entry.record = chunk->record;
    entry.values = chunk->weights->data();
    for (const FloatBuffer::Ptr& slot : chunk->slots) entry.slots.push_back(slot->data());
    RUBATO_RETURN_IF_ERROR(writer->Add(entry));
  }
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
  RUBATO_RETURN_IF_ERROR(writer->Finish(std::move(manifest)));
  const std::string name = CheckpointPartName(v1::TaskId::SERVER, options_.task.index());
  RUBATO_ASSIGN_OR_RETURN(uint64_t bytes, FileBytes(JoinPath(directory, name + ".data")));
  return static_cast<int64_t>(bytes);
}

}  // namespace rubato::server
