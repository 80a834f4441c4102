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

using What = Part::Array::What;

CheckpointArray ArrayAt(const Part& part, size_t index) {
  const Part::Array& array = part.arrays[index];
  const ChunkSnapshot& chunk = part.chunks[array.chunk];
  if (array.what == What::kPushCounts) return CheckpointArray(chunk.shard->push_counts);
  if (array.what == What::kKeys) return CheckpointArray(*chunk.shard->keys);
  if (array.what == What::kRows) return {*chunk.shard->rows, std::nullopt};
  const FloatBuffer& buffer = array.what == What::kSlot ? *chunk.slots[array.slot] : *chunk.weights;
  return {absl::MakeConstSpan(buffer.data(), buffer.size()), buffer.crc32()};
}

// Whether the array is given to the disk in pieces: a shard's, which may be of any size.
bool IsInPieces(const Part& part, size_t index) {
  return part.chunks[part.arrays[index].chunk].shard != nullptr && ArrayAt(part, index).bytes.size() > kBytesTogether;
}

// The next array is in the file, and let go of if it is not needed for another attempt.
void OnWritten(Part& part, uint64_t at) {
  const Part::Array& array = part.arrays[part.written++];
  ChunkSnapshot& chunk = part.chunks[array.chunk];
  const bool lets_go = part.unfinished->holds_arrays() && array.what != What::kPushCounts && array.what != What::kKeys;
  part.let_go |= lets_go;
  switch (array.what) {
    case What::kSlot:
      chunk.record.add_slots_at(at);
      if (lets_go) chunk.slots[array.slot] = nullptr;
      return;
    case What::kWeights:
      chunk.record.set_values_at(at);
      part.unfinished->AddRecord(chunk.record);
      if (lets_go) chunk.weights = nullptr;
      return;
    case What::kPushCounts:
      part.push_counts_at = at;
      return;
    case What::kKeys:
      part.keys_at = at;
      return;
    case What::kRows:
      v1::ShardRecord record = chunk.shard->record;
      if (record.push_counts_bytes() > 0) record.set_push_counts_at(part.push_counts_at);
      record.set_keys_at(part.keys_at);
      record.set_rows_at(at);
      part.unfinished->AddRecord(std::move(record));
      // With its keys and counts.
      if (lets_go) chunk.shard = nullptr;
      return;
  }
}

// All slots come before all weights, as updates may wait for slots, and both before shards, for which nothing waits.
void ListArrays(Part& part) {
  part.arrays.clear();
  for (size_t chunk = 0; chunk < part.chunks.size(); ++chunk) {
    for (size_t slot = 0; slot < part.chunks[chunk].slots.size(); ++slot) {
      part.arrays.push_back({chunk, What::kSlot, slot});
    }
  }
  for (size_t chunk = 0; chunk < part.chunks.size(); ++chunk) {
    if (part.chunks[chunk].shard == nullptr) {
      part.arrays.push_back({chunk, What::kWeights});
    } else {
      if (!part.chunks[chunk].shard->push_counts.empty()) part.arrays.push_back({chunk, What::kPushCounts});
      part.arrays.push_back({chunk, What::kKeys});
      part.arrays.push_back({chunk, What::kRows});
    }
  }
  part.written = 0;
  part.begun = std::nullopt;
}

// The tensors from the last to the first, since gradients of a model's last layer are there first, and the chunks of
// each from its first on. Then an update that comes in its turn has replaced what the disk has just taken, and the
// array goes back to the pool; in the other direction none would for half of the part. Then the shards, by chunk.
void SortAsUpdatesCome(std::vector<ChunkSnapshot>& chunks) {
  const auto shards = std::partition(chunks.begin(), chunks.end(), [](const auto& c) { return c.shard == nullptr; });
  std::sort(shards, chunks.end(), [](const ChunkSnapshot& a, const ChunkSnapshot& b) {
    return a.shard->record.chunk() < b.shard->record.chunk();
  });
  absl::flat_hash_map<std::string, uint32_t> first_chunks;  // Of each tensor.
  for (auto chunk = chunks.begin(); chunk != shards; ++chunk) {
    const auto [known, is_new] = first_chunks.emplace(chunk->record.tensor(), chunk->record.chunk());
    known->second = std::min(known->second, chunk->record.chunk());
  }
  std::sort(chunks.begin(), shards, [&](const ChunkSnapshot& a, const ChunkSnapshot& b) {
    const uint32_t first_a = first_chunks.at(a.record.tensor());
    const uint32_t first_b = first_chunks.at(b.record.tensor());
    return first_a != first_b ? first_a > first_b : a.record.chunk() < b.record.chunk();
  });
}

// The next arrays.
absl::Status WriteTogether(Part& part) {
  std::vector<CheckpointArray> together;
  for (size_t next = part.written, bytes = 0; next < part.arrays.size() && bytes < kBytesTogether; ++next) {
    if (IsInPieces(part, next)) break;
    together.push_back(ArrayAt(part, next));
    bytes += together.back().bytes.size();
  }
  RUBATO_ASSIGN_OR_RETURN(const std::vector<uint64_t> places, part.unfinished->AddArrays(together));
  for (const uint64_t at : places) OnWritten(part, at);
  return absl::OkStatus();
}

// What follows of the next array, from where a call before, or an attempt before, has left off: on a disk that is
// nearly full each attempt would otherwise need room for all of it again.
absl::Status WritePiece(Part& part) {
  const absl::string_view bytes = ArrayAt(part, part.written).bytes;
  if (!part.begun) {
    RUBATO_ASSIGN_OR_RETURN(part.begun, part.unfinished->BeginArray(bytes.size()));
  }
  const uint64_t there = part.unfinished->bytes() - *part.begun;
  RUBATO_RETURN_IF_ERROR(part.unfinished->Append(bytes.substr(there, kBytesTogether)));
  if (there + kBytesTogether < bytes.size()) return absl::OkStatus();
  OnWritten(part, *std::exchange(part.begun, std::nullopt));
  return absl::OkStatus();
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
    RUBATO_RETURN_IF_ERROR(IsInPieces(part, part.written) ? WritePiece(part) : WriteTogether(part));
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
