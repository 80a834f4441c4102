#include <libdeflate.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "common/storage/checkpoint.h"
#include "common/storage/cut_record.h"
#include "common/task.h"

namespace rubato {
namespace {

// Of a table.
constexpr uint32_t kMostShards = 256, kMostDimension = 4096;

// Elements of a shape, or -1 when it is not one: a dimension under 1, or more elements than the bytes of any file.
int64_t ElementsOf(const google::protobuf::RepeatedField<int64_t>& shape) {
  int64_t elements = 1;
  for (int64_t dimension : shape) {
    if (dimension < 1 || elements > (int64_t{1} << 60) / dimension) return -1;
    elements *= dimension;
  }
  return elements;
}

std::string DataPath(const std::string& directory, const v1::TaskId& task) {
  return JoinPath(directory, absl::StrCat(CheckpointPartName(task.role(), task.index()), ".data"));
}

std::string ChunkName(const v1::ChunkRecord& chunk) {
  return absl::StrCat("chunk ", chunk.chunk(), " of ", chunk.tensor());
}

std::string ShardName(const v1::ShardRecord& shard) {
  return absl::StrCat("shard ", shard.shard(), " of ", shard.table());
}

// Of what is called `name`: `bytes` from `at` on.
absl::Status CheckArray(const std::string& name, absl::string_view field, uint64_t at, uint64_t bytes,
                        uint64_t data_bytes) {
  if (at <= data_bytes && bytes <= data_bytes - at) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(name, ": ", field, " ", at, " and its ", bytes,
                                          " bytes end after the data, which has ", data_bytes, " bytes"));
}

absl::Status CheckChunk(const v1::ChunkRecord& chunk, uint64_t data_bytes) {
  const int64_t elements = ElementsOf(chunk.shape());
  if (elements < 0) {
    return absl::DataLossError(
        absl::StrCat(ChunkName(chunk), ": shape [", absl::StrJoin(chunk.shape(), ", "), "] is impossible"));
  }
  if (chunk.length() < 1 || chunk.offset() < 0 || chunk.offset() > elements - chunk.length()) {
    return absl::DataLossError(absl::StrCat(ChunkName(chunk), ": offset ", chunk.offset(), " and length ",
                                            chunk.length(), " are not inside its ", elements, " elements"));
  }
  const std::string name = ChunkName(chunk);
  const uint64_t bytes = sizeof(float) * static_cast<uint64_t>(chunk.length());
  RUBATO_RETURN_IF_ERROR(CheckArray(name, "values_at", chunk.values_at(), bytes, data_bytes));
  for (uint64_t at : chunk.slots_at()) RUBATO_RETURN_IF_ERROR(CheckArray(name, "slots_at", at, bytes, data_bytes));
  return absl::OkStatus();
}

uint64_t RowBytes(const v1::ShardRecord& shard) { return sizeof(float) * shard.row_floats(); }

absl::Status CheckShard(const v1::ShardRecord& shard, uint64_t data_bytes) {
  const std::string name = ShardName(shard);
  if (shard.shards() < 1 || shard.shards() > kMostShards || !std::has_single_bit(shard.shards()) ||
      shard.shard() >= shard.shards()) {
    return absl::DataLossError(absl::StrCat(name, ": is one of ", shard.shards(),
                                            " shards; a table has a power of two of them, at most ", kMostShards));
  }
  const uint32_t dimension = shard.dimension();
  if (dimension < 1 || dimension > kMostDimension || shard.row_floats() < dimension ||
      shard.row_floats() > 4 * dimension + 8) {
    return absl::DataLossError(
        absl::StrCat(name, ": dimension ", dimension, " with row_floats ", shard.row_floats(), " is impossible"));
  }
  // Before the product, which might be too large for 64 bits.
  if (shard.rows() < 0 || static_cast<uint64_t>(shard.rows()) > data_bytes / RowBytes(shard)) {
    return absl::DataLossError(absl::StrCat(name, ": ", shard.rows(), " rows of ", RowBytes(shard),
                                            " bytes are not inside the data, which has ", data_bytes, " bytes"));
  }
  const auto rows = static_cast<uint64_t>(shard.rows());
  if (shard.push_counts_bytes() % sizeof(uint64_t) != 0) {
    return absl::DataLossError(
        absl::StrCat(name, ": push_counts_bytes ", shard.push_counts_bytes(), " is no multiple of ", sizeof(uint64_t)));
  }
  RUBATO_RETURN_IF_ERROR(
      CheckArray(name, "push_counts_at", shard.push_counts_at(), shard.push_counts_bytes(), data_bytes));
  RUBATO_RETURN_IF_ERROR(CheckArray(name, "keys_at", shard.keys_at(), sizeof(uint64_t) * rows, data_bytes));
  return CheckArray(name, "rows_at", shard.rows_at(), RowBytes(shard) * rows, data_bytes);
}

// Floats that the data of a part of this manifest, checked, has room for beside its shards.
int64_t FloatsOfChunks(const v1::CheckpointManifest& manifest) {
  uint64_t bytes = manifest.data_bytes();
  for (const v1::ShardRecord& shard : manifest.shards()) {
    const auto rows = static_cast<uint64_t>(shard.rows());
    for (const uint64_t array : {sizeof(uint64_t) * rows, RowBytes(shard) * rows, shard.push_counts_bytes()}) {
      bytes -= std::min(bytes, array);
    }
  }
  return static_cast<int64_t>(bytes / sizeof(float));
}

// The manifest, checked in itself and against the size of the data file.
absl::StatusOr<v1::CheckpointManifest> ReadManifest(const std::string& directory, v1::TaskId::Role role,
                                                    uint32_t index) {
  const std::string name = CheckpointPartName(role, index);
  const std::string path = JoinPath(directory, name + ".manifest");
  RUBATO_ASSIGN_OR_RETURN(std::string bytes, ReadFile(path));
  v1::CheckpointManifest manifest;
  if (!manifest.ParseFromString(bytes)) {
    return absl::DataLossError(absl::StrCat(path, ": not a valid CheckpointManifest"));
  }
  if (manifest.format_version() > kCheckpointFormatVersion) {
    return absl::UnimplementedError(absl::StrCat(path, ": format_version ", manifest.format_version(),
                                                 "; this program reads up to ", kCheckpointFormatVersion));
  }
  const v1::TaskId& task = manifest.task();
  if (task.role() != role || task.index() != index || (role == v1::TaskId::SERVER && !IsServerOf(manifest, index))) {
    return absl::DataLossError(absl::StrCat(path, ": is of ", TaskName(task), " in a job of ", manifest.servers(),
                                            " servers, expected ", name));
  }
  RUBATO_ASSIGN_OR_RETURN(uint64_t data_bytes, FileBytes(DataPath(directory, task)));
  if (data_bytes != manifest.data_bytes()) {
    return absl::DataLossError(absl::StrCat(DataPath(directory, task), ": has ", data_bytes,
                                            " bytes, its manifest says ", manifest.data_bytes()));
  }
  for (const v1::ChunkRecord& chunk : manifest.chunks()) {
    RUBATO_RETURN_IF_ERROR(Annotate(CheckChunk(chunk, data_bytes), path));
  }
  for (const v1::ShardRecord& shard : manifest.shards()) {
    RUBATO_RETURN_IF_ERROR(Annotate(CheckShard(shard, data_bytes), path));
  }
  return manifest;
}

absl::StatusOr<CheckpointPart> ReadPart(const std::string& directory, v1::CheckpointManifest manifest) {
  const std::string path = DataPath(directory, manifest.task());
  RUBATO_ASSIGN_OR_RETURN(std::string data, ReadFile(path));
  if (data.size() != manifest.data_bytes()) {
    return absl::DataLossError(
        absl::StrCat(path, ": has ", data.size(), " bytes, its manifest says ", manifest.data_bytes()));
  }
  const uint32_t crc = libdeflate_crc32(0, data.data(), data.size());
  if (crc != manifest.data_crc32()) {
    return absl::DataLossError(absl::StrCat(path, ": its CRC is ", crc, ", its manifest says ", manifest.data_crc32()));
  }
  return CheckpointPart{std::move(manifest), std::move(data)};
}

std::string ManifestPath(const std::string& directory, uint32_t server) {
  return JoinPath(directory, absl::StrCat(CheckpointPartName(v1::TaskId::SERVER, server), ".manifest"));
}

// Servers with a manifest there, ascending. NotFound: there is none.
absl::StatusOr<std::vector<uint32_t>> ServersThere(const std::string& directory) {
  RUBATO_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDirectory(directory));
  std::vector<uint32_t> servers;
  for (const std::string& name : names) {
    absl::string_view middle = name;
    uint32_t server = 0;
    if (absl::ConsumePrefix(&middle, "server-") && absl::ConsumeSuffix(&middle, ".manifest") &&
        absl::SimpleAtoi(middle, &server)) {
      servers.push_back(server);
    }
  }
  if (servers.empty()) {
    return absl::NotFoundError(
        absl::StrCat(directory, ": holds no server-<i>.manifest, hence no whole part of a checkpoint"));
  }
  std::sort(servers.begin(), servers.end());
  return servers;
}

// Which parts a checkpoint consists of.
struct PartList {
  // Of those that are missing, the first one alone, because a part may speak of any number.
  std::vector<uint32_t> servers;
  uint32_t count = 0;
  // 0: they are of no cut.
  uint64_t cut_id = 0;
};

// `there` are those with a manifest, ascending.
std::vector<uint32_t> ServersOf(const v1::CheckpointManifest& manifest, const std::vector<uint32_t>& there) {
  const auto& indices = manifest.server_indices();
  if (!indices.empty()) return {indices.begin(), indices.end()};
  std::vector<uint32_t> servers;
  bool any_missing = false;
  for (uint32_t server : there) {
    if (!any_missing && server > servers.size()) {
      any_missing = true;
      servers.push_back(static_cast<uint32_t>(servers.size()));
    }
    if (server < manifest.servers()) servers.push_back(server);
  }
  if (!any_missing && servers.size() < manifest.servers()) servers.push_back(static_cast<uint32_t>(servers.size()));
  return servers;
}

// As a part says that is of the cut, if one is wanted.
absl::StatusOr<PartList> ListOfParts(const std::string& directory, uint64_t cut_id) {
  RUBATO_ASSIGN_OR_RETURN(const std::vector<uint32_t> there, ServersThere(directory));
  absl::Status other;
  for (uint32_t server : there) {
    absl::StatusOr<v1::CheckpointManifest> manifest = ReadManifest(directory, v1::TaskId::SERVER, server);
    other.Update(manifest.status());
    if (!manifest.ok()) continue;
    const absl::Status fits = CheckCut(manifest->cut(), cut_id, ManifestPath(directory, server));
    other.Update(fits);
    if (!fits.ok()) continue;
    if (cut_id == 0 && manifest->cut().id() != 0) {
      return absl::NotFoundError(absl::StrCat(directory, ": was never completed: there are parts of ",
                                              CutName(manifest->cut()), " and no file ", kCutRecordName));
    }
    return PartList{ServersOf(*manifest, there), manifest->servers(), manifest->cut().id()};
  }
  return other;
}

absl::StatusOr<PartList> FindParts(const std::string& directory, uint64_t cut_id) {
  absl::StatusOr<v1::CutRecord> record = ReadCutRecord(directory);
  if (absl::IsNotFound(record.status())) return ListOfParts(directory, cut_id);
  if (!record.ok()) return record.status();
  RUBATO_RETURN_IF_ERROR(CheckCut(record->cut(), cut_id, JoinPath(directory, kCutRecordName)));
  return PartList{{record->servers().begin(), record->servers().end()},
                  static_cast<uint32_t>(record->servers_size()),
                  record->cut().id()};
}

// Puts chunks together.
class Assembler {
 public:
  // `max_elements`: floats in all data files that are of no table, hence the most that a tensor can have.
  explicit Assembler(int64_t max_elements) : max_elements_(max_elements) {}

  absl::Status Take(const CheckpointPart& part) {
    for (const v1::ChunkRecord& chunk : part.manifest.chunks()) {
      RUBATO_ASSIGN_OR_RETURN(Assembly * tensor, TensorOf(chunk));
      part.Copy(chunk.values_at(), chunk.length(), tensor->tensor.values.data() + chunk.offset());
      tensor->pieces.emplace_back(chunk.offset(), chunk.length());
      tensor->lowest_chunk = std::min(tensor->lowest_chunk, chunk.chunk());
      version_min_ = any_ ? std::min(version_min_, chunk.version()) : chunk.version();
      version_max_ = any_ ? std::max(version_max_, chunk.version()) : chunk.version();
      any_ = true;
    }
    return absl::OkStatus();
  }

  absl::Status Finish(Checkpoint* checkpoint) {
    for (Assembly& tensor : tensors_) RUBATO_RETURN_IF_ERROR(CheckPieces(tensor));
    std::sort(tensors_.begin(), tensors_.end(),
              [](const Assembly& a, const Assembly& b) { return a.lowest_chunk < b.lowest_chunk; });
    for (Assembly& tensor : tensors_) checkpoint->tensors.push_back(std::move(tensor.tensor));
    checkpoint->version_min = version_min_;
    checkpoint->version_max = version_max_;
    return absl::OkStatus();
  }

 private:
  struct Assembly {
    NamedTensor tensor;
    uint32_t lowest_chunk;
    std::vector<std::pair<int64_t, int64_t>> pieces;  // Offset, length.
  };

  absl::StatusOr<Assembly*> TensorOf(const v1::ChunkRecord& chunk) {
    const std::vector<int64_t> shape(chunk.shape().begin(), chunk.shape().end());
    auto [it, is_new] = by_name_.try_emplace(chunk.tensor(), tensors_.size());
    if (is_new) {
      const int64_t elements = ElementsOf(chunk.shape());
      // Of all tensors together, so that a bad manifest cannot ask for more memory than its data take.
      if (elements > max_elements_ - elements_) {
        return absl::DataLossError(absl::StrCat(ChunkName(chunk), ": the tensor has ", elements, " elements, others ",
                                                elements_, ", the checkpoint ", max_elements_));
      }
      elements_ += elements;
      tensors_.push_back({{chunk.tensor(), shape, std::vector<float>(elements)}, chunk.chunk(), {}});
    }
    Assembly& tensor = tensors_[it->second];
    if (tensor.tensor.shape != shape) {
      return absl::DataLossError(absl::StrCat(ChunkName(chunk), ": shape [", absl::StrJoin(shape, ", "),
                                              "], another chunk says [", absl::StrJoin(tensor.tensor.shape, ", "),
                                              "]"));
    }
    return &tensor;
  }

  static absl::Status CheckPieces(Assembly& tensor) {
    std::sort(tensor.pieces.begin(), tensor.pieces.end());
    int64_t end = 0;
    for (const auto& [offset, length] : tensor.pieces) {
      if (offset != end) {
        return absl::DataLossError(absl::StrCat(tensor.tensor.name, ": elements ", std::min(offset, end), " to ",
                                                std::max(offset, end) - 1, " are ",
                                                offset > end ? "missing" : "there twice"));
      }
      end += length;
    }
    const int64_t elements = static_cast<int64_t>(tensor.tensor.values.size());
    if (end == elements) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat(tensor.tensor.name, ": elements ", end, " to ", elements - 1, " are missing"));
  }

  const int64_t max_elements_;
  int64_t elements_ = 0;  // Of the tensors so far.
  std::vector<Assembly> tensors_;
  absl::flat_hash_map<std::string, size_t> by_name_;
  int64_t version_min_ = 0;
  int64_t version_max_ = 0;
  bool any_ = false;
};

// The manifests of all parts, by the servers' indices; of one job and one checkpoint. `missing`: null, or where the
// first error goes of parts that are not there.
absl::StatusOr<std::vector<v1::CheckpointManifest>> ReadManifests(const std::string& directory, uint64_t cut_id,
                                                                  absl::Status* missing) {
  RUBATO_ASSIGN_OR_RETURN(PartList list, FindParts(directory, cut_id));
  std::sort(list.servers.begin(), list.servers.end());
  list.servers.erase(std::unique(list.servers.begin(), list.servers.end()), list.servers.end());
  std::vector<v1::CheckpointManifest> manifests;
  for (uint32_t server : list.servers) {
    absl::StatusOr<v1::CheckpointManifest> manifest = ReadManifest(directory, v1::TaskId::SERVER, server);
    if (!manifest.ok()) {
      const absl::Status error =
          Annotate(manifest.status(), absl::StrCat("server ", server, " of the checkpoint's ", list.count));
      if (missing == nullptr || !absl::IsNotFound(error)) return error;
      missing->Update(error);
      continue;
    }
    const v1::CheckpointManifest& first = manifests.empty() ? *manifest : manifests[0];
    if (manifest->cut().id() != list.cut_id) {
      return absl::FailedPreconditionError(
          absl::StrCat(ManifestPath(directory, server), ": is of ", CutName(manifest->cut()), ", the checkpoint is of ",
                       list.cut_id == 0 ? "no cut" : absl::StrCat("cut ", list.cut_id)));
    }
    if (manifest->job_name() != first.job_name() || manifest->servers() != first.servers()) {
      return absl::DataLossError(absl::StrCat(directory, ": server ", server, " wrote for job '", manifest->job_name(),
                                              "' with ", manifest->servers(), " servers, server ", first.task().index(),
                                              " for job '", first.job_name(), "' with ", first.servers()));
    }
    manifests.push_back(*std::move(manifest));
  }
  return manifests;
}

}  // namespace

std::string CheckpointPartName(v1::TaskId::Role role, uint32_t index) {
  return absl::StrCat(role == v1::TaskId::WORKER ? "worker-" : "server-", index);
}

void CheckpointPart::Copy(uint64_t at, int64_t length, float* out) const {
  data.copy(reinterpret_cast<char*>(out), sizeof(float) * static_cast<size_t>(length), at);
}

void CheckpointPart::Copy(uint64_t at, int64_t length, uint64_t* out) const {
  data.copy(reinterpret_cast<char*>(out), sizeof(uint64_t) * static_cast<size_t>(length), at);
}

absl::StatusOr<v1::CheckpointManifest> ReadCheckpointManifest(const std::string& directory, v1::TaskId::Role role,
                                                              uint32_t index, uint64_t cut_id) {
  RUBATO_ASSIGN_OR_RETURN(v1::CheckpointManifest manifest, ReadManifest(directory, role, index));
  RUBATO_RETURN_IF_ERROR(
      CheckCut(manifest.cut(), cut_id, JoinPath(directory, CheckpointPartName(role, index) + ".manifest")));
  return manifest;
}

absl::StatusOr<std::string> ReadCheckpointData(const std::string& directory, v1::TaskId::Role role, uint32_t index,
                                               uint64_t offset, size_t bytes) {
  return ReadFileRange(JoinPath(directory, CheckpointPartName(role, index) + ".data"), offset, bytes);
}

absl::StatusOr<CheckpointPart> ReadCheckpointPart(const std::string& directory, v1::TaskId::Role role, uint32_t index,
                                                  uint64_t cut_id) {
  RUBATO_ASSIGN_OR_RETURN(v1::CheckpointManifest manifest, ReadCheckpointManifest(directory, role, index, cut_id));
  return ReadPart(directory, std::move(manifest));
}

absl::StatusOr<std::vector<uint32_t>> ServersOfCheckpoint(const std::string& directory, uint64_t cut_id,
                                                          absl::Status* missing) {
  RUBATO_ASSIGN_OR_RETURN(std::vector<v1::CheckpointManifest> manifests, ReadManifests(directory, cut_id, missing));
  std::vector<uint32_t> servers;
  for (const v1::CheckpointManifest& manifest : manifests) servers.push_back(manifest.task().index());
  return servers;
}

absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& directory) {
  RUBATO_ASSIGN_OR_RETURN(std::vector<v1::CheckpointManifest> manifests, ReadManifests(directory, 0, nullptr));
  Checkpoint checkpoint;
  checkpoint.job_name = manifests[0].job_name();
  checkpoint.plan = manifests[0].plan();
  int64_t max_elements = 0;
  for (const v1::CheckpointManifest& manifest : manifests) max_elements += FloatsOfChunks(manifest);
  Assembler assembler(max_elements);
  for (v1::CheckpointManifest& manifest : manifests) {
    RUBATO_ASSIGN_OR_RETURN(CheckpointPart part, ReadPart(directory, std::move(manifest)));
    RUBATO_RETURN_IF_ERROR(Annotate(assembler.Take(part), directory));
  }
  RUBATO_RETURN_IF_ERROR(Annotate(assembler.Finish(&checkpoint), directory));
  return checkpoint;
}

absl::StatusOr<std::vector<NamedTensor>> ReadCheckpointTensors(const std::string& directory) {
  RUBATO_ASSIGN_OR_RETURN(Checkpoint checkpoint, ReadCheckpoint(directory));
  return std::move(checkpoint.tensors);
}

}  // namespace rubato
