#include "server/part_files.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/storage/checkpoint.h"
#include "common/storage/cut_record.h"
#include "common/storage/file.h"

namespace rubato::server {
namespace {

// Of an array that was written, if it is not needed for another attempt.
void LetGo(Part& part, FloatBuffer::Ptr& array) {
  if (!part.unfinished->holds_arrays()) return;
  array = nullptr;
  part.let_go = true;
}

// The tensors from the last to the first, since gradients of a model's last layer are there first, and the chunks of
// each from its first on. Then an update that comes in its turn has replaced what the disk has just taken, and the
// array goes back to the pool; in the other direction none would for half of the part.
void SortAsUpdatesCome(std::vector<ChunkSnapshot>& chunks) {
  absl::flat_hash_map<std::string, uint32_t> first_chunks;  // Of each tensor.
  for (const ChunkSnapshot& chunk : chunks) {
    const auto [known, is_new] = first_chunks.emplace(chunk.record.tensor(), chunk.record.chunk());
    known->second = std::min(known->second, chunk.record.chunk());
  }
  std::sort(chunks.begin(), chunks.end(), [&](const ChunkSnapshot& a, const ChunkSnapshot& b) {
    const uint32_t first_a = first_chunks.at(a.record.tensor());
    const uint32_t first_b = first_chunks.at(b.record.tensor());
    return first_a != first_b ? first_a > first_b : a.record.chunk() < b.record.chunk();
  });
}

}  // namespace

absl::StatusOr<int64_t> PartFiles::Write(Part& part, const std::function<bool()>& cancelled) const {
  absl::Status status = part.unfinished == nullptr ? Begin(part) : absl::OkStatus();
  // Updates may wait for slots.
  if (status.ok()) status = WriteSlots(part, cancelled);
  if (status.ok()) status = WriteWeights(part, cancelled);
  if (status.ok()) status = Finish(part);
  if (status.ok()) {
    const auto bytes = static_cast<int64_t>(part.unfinished->bytes());
    part.unfinished = nullptr;
    part.chunks.clear();
    return bytes;
  }
  if (!part.let_go) {
    part.unfinished = nullptr;
    return status;
  }
  if (!part.unfinished->is_lost()) return status;
  return absl::DataLossError(absl::StrCat(part.name, ": the disk has not kept what it had taken: ", status.message()));
}

absl::Status PartFiles::Begin(Part& part) const {
  if (!IsCheckpointName(part.name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("name: '", part.name, "'; a checkpoint is called step<number>, final or stopped"));
  }
  // Partitions bring them in any order; the same weights shall make the same file.
  SortAsUpdatesCome(part.chunks);
  part.with_slots = part.with_weights = 0;
  for (ChunkSnapshot& chunk : part.chunks) chunk.record.clear_slots_at();
  RUBATO_ASSIGN_OR_RETURN(part.unfinished,
                          CheckpointWriter::Create(JoinPath(options_.directory, part.name), options_.task));
  return absl::OkStatus();
}

absl::Status PartFiles::WriteSlots(Part& part, const std::function<bool()>& cancelled) const {
  for (; part.with_slots < part.chunks.size(); ++part.with_slots) {
    if (cancelled()) return absl::CancelledError(absl::StrCat(part.name, ": given up"));
    ChunkSnapshot& chunk = part.chunks[part.with_slots];
    while (static_cast<size_t>(chunk.record.slots_at_size()) < chunk.slots.size()) {
      FloatBuffer::Ptr& slot = chunk.slots[chunk.record.slots_at_size()];
      RUBATO_ASSIGN_OR_RETURN(const uint64_t at, part.unfinished->AddArray(slot->data(), slot->size()));
      chunk.record.add_slots_at(at);
      LetGo(part, slot);
    }
  }
  return absl::OkStatus();
}

absl::Status PartFiles::WriteWeights(Part& part, const std::function<bool()>& cancelled) const {
  for (; part.with_weights < part.chunks.size(); ++part.with_weights) {
    if (cancelled()) return absl::CancelledError(absl::StrCat(part.name, ": given up"));
    ChunkSnapshot& chunk = part.chunks[part.with_weights];
    RUBATO_ASSIGN_OR_RETURN(const uint64_t at, part.unfinished->AddArray(chunk.weights->data(), chunk.weights->size()));
    chunk.record.set_values_at(at);
    part.unfinished->AddRecord(chunk.record);
    LetGo(part, chunk.weights);
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
