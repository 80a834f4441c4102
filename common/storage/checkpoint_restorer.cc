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
namespace {

std::string ShardName(uint32_t shard, const std::string& table) { return absl::StrCat("shard ", shard, " of ", table); }

std::string AlgorithmName(v1::TableConfig::Algorithm algorithm) {
  return v1::TableConfig::Algorithm_IsValid(algorithm) ? v1::TableConfig::Algorithm_Name(algorithm)
                                                       : absl::StrCat("algorithm ", static_cast<int>(algorithm));
}

// Whether a table of the checkpoint is the job's.
absl::Status CheckTable(const v1::ShardRecord& record, const CheckpointRestorer::Shard& job) {
  const auto refuse = [&](const auto&... text) {
    return absl::FailedPreconditionError(absl::StrCat(record.table(), ": ", text...));
  };
  if (record.shards() != job.shards) {
    return refuse(record.shards(), " shards, the job's model.tables.shards is ", job.shards);
  }
  if (record.algorithm() != job.algorithm) {
    return refuse(AlgorithmName(record.algorithm()), ", the job's model.tables.algorithm is ",
                  AlgorithmName(job.algorithm));
  }
  if (record.dimension() != job.dimension) {
    return refuse("dimension ", record.dimension(), ", the job's model.tables.dimension is ", job.dimension);
  }
  if (record.row_floats() != job.row_floats) {
    return refuse("rows of ", record.row_floats(),
                  " float32, with the job's model.tables.algorithm, dimension, expire_after_steps and most_rows ",
                  job.row_floats);
  }
  return absl::OkStatus();
}

absl::Status CheckAscending(const v1::ShardRecord& record, const std::vector<uint64_t>& keys) {
  for (size_t i = 1; i < keys.size(); ++i) {
    if (keys[i - 1] < keys[i]) [[likely]]
      continue;
    return absl::DataLossError(absl::StrCat(ShardName(record.shard(), record.table()), ": key ", keys[i], " at ", i,
                                            keys[i] == keys[i - 1] ? " comes twice" : " is out of order"));
  }
  return absl::OkStatus();
}

}  // namespace

void CheckpointRestorer::Add(Slice slice) {
  of_tensor_[slice.tensor].push_back(slices_.size());
  slices_.push_back(std::move(slice));
  filled_.push_back(0);
}

void CheckpointRestorer::AddShard(Shard shard) {
  std::vector<Wanted>& shards = of_table_[shard.table];
  shards.push_back({.shard = std::move(shard), .is_found = false, .is_restored = false});
}

absl::Status CheckpointRestorer::ReadServers(const std::string& directory, uint64_t cut_id, bool is_complete) {
  std::fill(filled_.begin(), filled_.end(), 0);
  for (auto& [table, shards] : of_table_) {
    for (Wanted& wanted : shards) wanted.is_found = false;
  }
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
  for (const v1::ShardRecord& record : manifest.shards()) {
    const auto found = of_table_.find(record.table());
    if (found == of_table_.end()) continue;
    for (const Wanted& wanted : found->second) {
      if (wanted.shard.shard == record.shard() && !wanted.is_restored) return true;
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
  for (const v1::ShardRecord& shard : part.manifest.shards()) RUBATO_RETURN_IF_ERROR(TakeShard(part, shard));
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

absl::Status CheckpointRestorer::TakeShard(const CheckpointPart& part, const v1::ShardRecord& record) {
  const auto found = of_table_.find(record.table());
  if (found == of_table_.end()) return absl::OkStatus();
  for (Wanted& wanted : found->second) {
    // Also of other shards: if there are not as many as the job has, its own may not be there.
    RUBATO_RETURN_IF_ERROR(CheckTable(record, wanted.shard));
    if (wanted.shard.shard != record.shard()) continue;
    if (wanted.is_found) {
      return absl::DataLossError(absl::StrCat(ShardName(record.shard(), record.table()), ": is there twice"));
    }
    wanted.is_found = true;
    if (!wanted.is_restored) RUBATO_RETURN_IF_ERROR(Restore(part, record, wanted));
  }
  return absl::OkStatus();
}

absl::Status CheckpointRestorer::Restore(const CheckpointPart& part, const v1::ShardRecord& record, Wanted& wanted) {
  // Copies, because in the part they may begin at any byte.
  std::vector<uint64_t> keys(record.rows());
  part.Copy(record.keys_at(), record.rows(), keys.data());
  RUBATO_RETURN_IF_ERROR(CheckAscending(record, keys));
  const int64_t floats = record.rows() * record.row_floats();
  std::vector<float> rows(floats);
  part.Copy(record.rows_at(), floats, rows.data());
  std::vector<uint64_t> push_counts(record.push_counts_bytes() / sizeof(uint64_t));
  part.Copy(record.push_counts_at(), static_cast<int64_t>(push_counts.size()), push_counts.data());
  RUBATO_RETURN_IF_ERROR(
      wanted.shard.restore({.record = record, .keys = keys, .rows = rows, .push_counts = push_counts}));
  wanted.is_restored = true;
  return absl::OkStatus();
}

absl::Status CheckpointRestorer::CheckFilled(const std::string& directory) const {
  for (size_t i = 0; i < slices_.size(); ++i) {
    if (filled_[i] == slices_[i].length) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(directory, ": of ", slices_[i].tensor, ", elements ", slices_[i].offset, " to ",
                     slices_[i].offset + slices_[i].length - 1, ", it has ", filled_[i], " of ", slices_[i].length));
  }
  for (const auto& [table, shards] : of_table_) {
    for (const Wanted& wanted : shards) {
      if (wanted.is_restored) continue;
      return absl::FailedPreconditionError(absl::StrCat(directory, ": of ", table, ", it lacks shard ",
                                                        wanted.shard.shard, " of ", wanted.shard.shards));
    }
  }
  return absl::OkStatus();
}

}  // namespace rubato
