#include <libdeflate.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/array_alignment.h"
#include "common/random.h"
#include "common/status.h"
#include "common/storage/checkpoint.h"

namespace rubato {
namespace {

std::string ServersText(const v1::CheckpointManifest& manifest) {
  if (manifest.server_indices().empty()) return absl::StrCat(manifest.servers(), " servers");
  return absl::StrCat("servers ", absl::StrJoin(manifest.server_indices(), ", "));
}

std::string PartPath(const std::string& directory, const v1::TaskId& task, absl::string_view suffix) {
  return JoinPath(directory, absl::StrCat(CheckpointPartName(task.role(), task.index()), suffix));
}

}  // namespace

absl::Status RemoveUnfinishedPart(const std::string& directory, const std::string& part) {
  const absl::StatusOr<std::vector<std::string>> files = ListDirectory(directory);
  if (absl::IsNotFound(files.status())) return absl::OkStatus();
  RUBATO_RETURN_IF_ERROR(files.status());
  for (const std::string& file : *files) {
    absl::string_view rest = file;
    if (!absl::ConsumePrefix(&rest, part) || !absl::ConsumeSuffix(&rest, ".tmp")) continue;
    const bool unfinished = rest == ".manifest" || rest == ".data" || absl::StartsWith(rest, ".data.");
    if (unfinished) RUBATO_RETURN_IF_ERROR(RemoveFile(JoinPath(directory, file)));
  }
  return absl::OkStatus();
}

bool IsServerOf(const v1::CheckpointManifest& manifest, uint32_t index) {
  const auto& indices = manifest.server_indices();
  if (indices.empty()) return index < manifest.servers();
  return std::find(indices.begin(), indices.end(), index) != indices.end();
}

absl::StatusOr<std::unique_ptr<CheckpointWriter>> CheckpointWriter::Create(const std::string& directory,
                                                                           v1::TaskId task) {
  RUBATO_RETURN_IF_ERROR(MakeDirectories(directory));
  RUBATO_RETURN_IF_ERROR(RemoveUnfinishedPart(directory, CheckpointPartName(task.role(), task.index())));
  // No two writers have the same file.
  const std::string name = PartPath(directory, task, absl::StrFormat(".data.%016x.tmp", SystemRandom64()));
  RUBATO_ASSIGN_OR_RETURN(auto data, DirectFileWriter::Create(name));
  return std::unique_ptr<CheckpointWriter>(new CheckpointWriter(directory, std::move(task), std::move(data)));
}

CheckpointWriter::~CheckpointWriter() {
  if (!finished_) RemoveFile(data_->path()).IgnoreError();
}

absl::Status CheckpointWriter::WriteData(absl::Span<const Piece> pieces) {
  std::vector<absl::string_view> bytes;
  for (const Piece& piece : pieces) bytes.push_back(piece.bytes);
  const uint64_t before = data_->bytes();
  const absl::Status status = data_->Write(bytes);
  uint64_t taken = data_->bytes() - before;
  for (const Piece& piece : pieces) {
    const absl::string_view written = piece.bytes.substr(0, taken);
    taken -= written.size();
    if (written.empty()) continue;  // To libdeflate a null pointer is a beginning.
    if (piece.crc32 && written.size() == piece.bytes.size()) {
      crc_ = static_cast<uint32_t>(crc32_combine(crc_, *piece.crc32, static_cast<z_off_t>(written.size())));
    } else {
      crc_ = libdeflate_crc32(crc_, written.data(), written.size());
    }
  }
  return status;
}

absl::string_view CheckpointWriter::PaddingBefore(uint64_t array_bytes, uint64_t end) {
  static constexpr std::array<char, kDiskBlock> kPadding = {};
  if (array_bytes == 0) return {};
  return {kPadding.data(), RoundUpTo(end, ArrayAlignment(array_bytes)) - end};
}

absl::StatusOr<std::vector<uint64_t>> CheckpointWriter::AddArrays(absl::Span<const CheckpointArray> arrays) {
  std::vector<uint64_t> places;
  std::vector<Piece> pieces;
  uint64_t end = data_->bytes();
  for (const CheckpointArray& array : arrays) {
    const absl::string_view padding = PaddingBefore(array.bytes.size(), end);
    if (!padding.empty()) pieces.push_back({.bytes = padding, .crc32 = std::nullopt});
    if (!array.bytes.empty()) pieces.push_back({.bytes = array.bytes, .crc32 = array.crc32});
    places.push_back(end + padding.size());
    end = places.back() + array.bytes.size();
  }
  RUBATO_RETURN_IF_ERROR(WriteData(pieces));
  return places;
}

absl::StatusOr<uint64_t> CheckpointWriter::BeginArray(uint64_t array_bytes) {
  RUBATO_RETURN_IF_ERROR(Append(PaddingBefore(array_bytes, data_->bytes())));
  return data_->bytes();
}

absl::Status CheckpointWriter::Append(absl::string_view piece) {
  return WriteData({{.bytes = piece, .crc32 = std::nullopt}});
}

absl::Status CheckpointWriter::Add(const CheckpointChunk& chunk) {
  v1::ChunkRecord record = chunk.record;
  const bool whole =
      chunk.values != nullptr && std::find(chunk.slots.begin(), chunk.slots.end(), nullptr) == chunk.slots.end();
  if (record.length() < 1 || !whole) {
    return absl::InvalidArgumentError(absl::StrCat("chunk ", record.chunk(), " of ", record.tensor(), ": length ",
                                                   record.length(),
                                                   whole ? "; at least 1 is needed" : ", and an array is missing"));
  }
  const auto length = static_cast<size_t>(record.length());
  std::vector<CheckpointArray> arrays = {{{chunk.values, length}, std::nullopt}};
  for (const float* slot : chunk.slots) arrays.push_back({{slot, length}, std::nullopt});
  RUBATO_ASSIGN_OR_RETURN(const std::vector<uint64_t> places, AddArrays(arrays));
  record.set_values_at(places[0]);
  record.mutable_slots_at()->Assign(places.begin() + 1, places.end());
  AddRecord(std::move(record));
  return absl::OkStatus();
}

absl::Status CheckpointWriter::Add(const CheckpointShard& shard) {
  v1::ShardRecord record = shard.record;
  const auto rows = static_cast<size_t>(record.rows());
  if (shard.keys.size() != rows || shard.rows.size() != rows * record.row_floats()) {
    return absl::InvalidArgumentError(
        absl::StrCat("shard ", record.shard(), " of ", record.table(), ": ", shard.keys.size(), " keys and ",
                     shard.rows.size(), " float32; its record says ", record.rows(), " rows of ", record.row_floats()));
  }
  if (sizeof(uint64_t) * shard.push_counts.size() != record.push_counts_bytes()) {
    return absl::InvalidArgumentError(absl::StrCat("shard ", record.shard(), " of ", record.table(), ": ",
                                                   sizeof(uint64_t) * shard.push_counts.size(),
                                                   " bytes of counts; its record says ", record.push_counts_bytes()));
  }
  RUBATO_ASSIGN_OR_RETURN(
      const std::vector<uint64_t> places,
      AddArrays({CheckpointArray(shard.push_counts), CheckpointArray(shard.keys), {shard.rows, std::nullopt}}));
  if (record.push_counts_bytes() > 0) record.set_push_counts_at(places[0]);
  record.set_keys_at(places[1]);
  record.set_rows_at(places[2]);
  AddRecord(std::move(record));
  return absl::OkStatus();
}

absl::Status CheckpointWriter::Finish(v1::CheckpointManifest manifest) {
  if (task_.role() == v1::TaskId::SERVER && !IsServerOf(manifest, task_.index())) {
    return absl::InvalidArgumentError(
        absl::StrCat("part of server ", task_.index(), " in a checkpoint of ", ServersText(manifest)));
  }
  *manifest.mutable_task() = task_;
  const auto by_chunk = [](const auto& a, const auto& b) { return a.chunk() < b.chunk(); };
  std::sort(chunks_.begin(), chunks_.end(), by_chunk);
  std::sort(shards_.begin(), shards_.end(), by_chunk);
  const bool is_second = manifest.has_cut() || manifest.has_worker() || manifest.server_indices_size() > 0;
  const uint32_t without_shards = is_second ? 2 : 1;
  manifest.set_format_version(shards_.empty() ? without_shards : kCheckpointFormatVersion);
  manifest.set_data_crc32(crc_);
  manifest.set_data_bytes(data_->bytes());
  manifest.mutable_chunks()->Assign(chunks_.begin(), chunks_.end());
  manifest.mutable_shards()->Assign(shards_.begin(), shards_.end());
  return PutInPlace(manifest);
}

absl::Status CheckpointWriter::FinishCopy(const v1::CheckpointManifest& manifest) {
  if (manifest.data_bytes() == data_->bytes() && manifest.data_crc32() == crc_) return PutInPlace(manifest);
  return absl::DataLossError(absl::StrCat(PartPath(directory_, task_, ".data"), ": a copy of ", data_->bytes(),
                                          " bytes with CRC ", crc_, "; the manifest says ", manifest.data_bytes(),
                                          " bytes and ", manifest.data_crc32()));
}

absl::Status CheckpointWriter::PutInPlace(const v1::CheckpointManifest& manifest) {
  if (!data_in_place_) RUBATO_RETURN_IF_ERROR(PutDataInPlace());
  const absl::Status status =
      WriteFileAtomically(PartPath(directory_, task_, ".manifest"), manifest.SerializeAsString());
  finished_ = status.ok();
  return status;
}

absl::Status CheckpointWriter::PutDataInPlace() {
  if (!synced_) RUBATO_RETURN_IF_ERROR(data_->Finish());
  synced_ = true;
  // What is there then is another writer's.
  const absl::Status there = FileBytes(data_->path()).status();
  lost_ = absl::IsNotFound(there);
  RUBATO_RETURN_IF_ERROR(there);
  // An earlier manifest would vouch for data that is about to be replaced.
  RUBATO_RETURN_IF_ERROR(RemoveFile(PartPath(directory_, task_, ".manifest")));
  RUBATO_RETURN_IF_ERROR(RenameFile(data_->path(), PartPath(directory_, task_, ".data")));
  data_in_place_ = true;
  return absl::OkStatus();
}

}  // namespace rubato
