#include "server/part_files.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/status.h"
#include "common/storage/checkpoint.h"
#include "common/storage/cut_record.h"
#include "common/storage/file.h"

namespace rubato::server {
namespace {

// What is given to the disk at a time: enough to keep one busy, and not so much that updates wait for its arrays.
constexpr size_t kBytesTogether = size_t{4} << 20;

FloatBuffer::Ptr& ArrayAt(Part& part, size_t index) {
  const Part::Array& array = part.arrays[index];
  ChunkSnapshot& chunk = part.chunks[array.chunk];
  return array.slot ? chunk.slots[*array.slot] : chunk.weights;
}

// The next array is in the file, and let go of if it is not needed for another attempt.
void OnWritten(Part& part, uint64_t at) {
  const Part::Array& array = part.arrays[part.written];
  v1::ChunkRecord& record = part.chunks[array.chunk].record;
  if (array.slot) {
    record.add_slots_at(at);
  } else {
    record.set_values_at(at);
    part.unfinished->AddRecord(record);
  }
  if (part.unfinished->holds_arrays()) {
    ArrayAt(part, part.written) = nullptr;
    part.let_go = true;
  }
  ++part.written;
}

// All slots come before all weights, as updates may wait for slots.
void ListArrays(Part& part) {
  part.arrays.clear();
  for (size_t chunk = 0; chunk < part.chunks.size(); ++chunk) {
    for (size_t slot = 0; slot < part.chunks[chunk].slots.size(); ++slot) part.arrays.push_back({chunk, slot});
  }
  for (size_t chunk = 0; chunk < part.chunks.size(); ++chunk) part.arrays.push_back({chunk, std::nullopt});
  part.written = 0;
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
  if (status.ok()) status = WriteArrays(part, cancelled);
  if (status.ok()) status = Finish(part);
  if (status.ok()) {
    const auto bytes = static_cast<int64_t>(part.unfinished->bytes());
    part.unfinished = nullptr;
    part.arrays.clear();
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
  ListArrays(part);
  for (ChunkSnapshot& chunk : part.chunks) chunk.record.clear_slots_at();
  RUBATO_ASSIGN_OR_RETURN(part.unfinished,
                          CheckpointWriter::Create(JoinPath(options_.directory, part.name), options_.task));
  return absl::OkStatus();
}

absl::Status PartFiles::WriteArrays(Part& part, const std::function<bool()>& cancelled) const {
  while (part.written < part.arrays.size()) {
    if (cancelled()) return absl::CancelledError(absl::StrCat(part.name, ": given up"));
    std::vector<CheckpointArray> together;
    for (size_t next = part.written, bytes = 0; next < part.arrays.size() && bytes < kBytesTogether; ++next) {
      const FloatBuffer& array = *ArrayAt(part, next);
      together.push_back({.values = absl::MakeConstSpan(array.data(), array.size()), .crc32 = array.crc32()});
      bytes += together.back().values.size() * sizeof(float);
    }
    RUBATO_ASSIGN_OR_RETURN(const std::vector<uint64_t> places, part.unfinished->AddArrays(together));
    for (const uint64_t at : places) OnWritten(part, at);
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
