#ifndef RUBATO_COMMON_STORAGE_CHECKPOINT_H_
#define RUBATO_COMMON_STORAGE_CHECKPOINT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/storage/direct_file_writer.h"
#include "common/storage/file.h"
#include "proto/checkpoint.pb.h"

// Checkpoints: <directory>/server-<i>.data and .manifest, a pair for each server, and worker-<i>.* for workers that
// have something to keep (docs/formats.md). A pair is a part.

namespace rubato {

// The lowest version is written whose readers take notice of all that there is: 1 has no cut, indices of servers and
// worker state, 2 no shards of tables.
inline constexpr uint32_t kCheckpointFormatVersion = 3;

// "server-0", "worker-3".
std::string CheckpointPartName(v1::TaskId::Role role, uint32_t index);

// A chunk as it is. The arrays have record.length() elements each and belong to the caller.
struct CheckpointChunk {
  // All but values_at and slots_at, which the writer fills in.
  v1::ChunkRecord record;
  const float* values = nullptr;
  std::vector<const float*> slots;
};

// A shard of a table as it is: keys, ascending, and as many rows of record.row_floats() each.
struct CheckpointShard {
  // All but where the arrays are, which the writer fills in.
  v1::ShardRecord record;
  absl::Span<const uint64_t> keys;
  absl::Span<const float> rows;
  // How often keys without a row were pushed, if that matters (record.push_counts_bytes()).
  absl::Span<const uint64_t> push_counts = {};
};

// The values of a chunk or of one of its slots, or the keys, rows or counts of a shard.
struct CheckpointArray {
  CheckpointArray(absl::Span<const float> values, std::optional<uint32_t> known_crc32)
      : bytes(reinterpret_cast<const char*>(values.data()), sizeof(float) * values.size()), crc32(known_crc32) {}
  explicit CheckpointArray(absl::Span<const uint64_t> words)
      : bytes(reinterpret_cast<const char*>(words.data()), sizeof(uint64_t) * words.size()) {}

  absl::string_view bytes;
  // By zlib's polynomial; nothing: not known yet.
  std::optional<uint32_t> crc32;
};

// Writes one task's part of a checkpoint. Not thread-safe. Nothing is visible under its final name before Finish;
// what is written until then goes with the writer, as the room on the disk may be what is missing. A call that failed
// may be repeated, unless is_lost.
//
//   RUBATO_ASSIGN_OR_RETURN(auto writer, CheckpointWriter::Create(directory, task));
//   RUBATO_RETURN_IF_ERROR(writer->Add(chunk));
//   RUBATO_RETURN_IF_ERROR(writer->Finish(manifest));
class CheckpointWriter {
 public:
  // Creates the directory if needed. Takes the place of another writer of this part, also of one in a process that
  // stands still and goes on later: that one's Finish fails with NotFound, and leaves this one's part as it is.
  static absl::StatusOr<std::unique_ptr<CheckpointWriter>> Create(const std::string& directory, v1::TaskId task);
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Appends the chunk's arrays; they are not used afterwards. Chunks may come in any order. InvalidArgument for a
  // chunk without elements or with a missing array. If the call is repeated, what it had appended stays in the file and
  // belongs to no chunk.
  absl::Status Add(const CheckpointChunk& chunk);
  // The same of a shard, which may be without rows. InvalidArgument when an array is not as long as the record says.
  absl::Status Add(const CheckpointShard& shard);

  // The same in any order: arrays, which returns where each of them is, and a record, which says so. A disk that is
  // given some MiB in one call has less work with them. An empty array takes no bytes.
  absl::StatusOr<std::vector<uint64_t>> AddArrays(absl::Span<const CheckpointArray> arrays);
  void AddRecord(v1::ChunkRecord record) { chunks_.push_back(std::move(record)); }
  void AddRecord(v1::ShardRecord record) { shards_.push_back(std::move(record)); }
  // An array of so many bytes in pieces: where it begins, and then its bytes one after another, with nothing else
  // between them. Of a piece that failed, and of all before it, bytes() says how much there is: the rest is appended.
  absl::StatusOr<uint64_t> BeginArray(uint64_t array_bytes);
  absl::Status Append(absl::string_view piece);

  // Puts both files in place, durably, the manifest last. `manifest` says job_name, servers, plan, and as far as there
  // are any cut, server_indices and worker; the rest is filled in. InvalidArgument when the task is a server that is
  // none of them.
  absl::Status Finish(v1::CheckpointManifest manifest);

  // Instead of Add and Finish: the task's part as it is elsewhere. Its data, in pieces, then its manifest. DataLoss if
  // that is not the manifest of these data.
  absl::Status Copy(absl::string_view data) { return Append(data); }
  absl::Status FinishCopy(const v1::CheckpointManifest& manifest);

  // Of data so far.
  uint64_t bytes() const { return data_->bytes(); }
  // Arrays that were added are on the disk, or in the writer's memory: they are needed no more, even if a later call
  // fails, unless is_lost.
  bool holds_arrays() const { return data_->is_direct(); }
  // What was added is gone: the disk has not kept it, or another writer has taken this one's place.
  bool is_lost() const { return data_->is_lost() || lost_; }

 private:
  CheckpointWriter(std::string directory, v1::TaskId task, std::unique_ptr<DirectFileWriter> data)
      : directory_(std::move(directory)), task_(std::move(task)), data_(std::move(data)) {}
  struct Piece {
    absl::string_view bytes;
    std::optional<uint32_t> crc32;
  };
  // Zeros between `end` and where an array of so many bytes may begin.
  static absl::string_view PaddingBefore(uint64_t array_bytes, uint64_t end);
  absl::Status WriteData(absl::Span<const Piece> pieces);
  absl::Status PutInPlace(const v1::CheckpointManifest& manifest);
  // Its data alone.
  absl::Status PutDataInPlace();

  const std::string directory_;
  const v1::TaskId task_;
  const std::unique_ptr<DirectFileWriter> data_;
  std::vector<v1::ChunkRecord> chunks_;
  std::vector<v1::ShardRecord> shards_;
  uint32_t crc_ = 0;
  bool synced_ = false;
  bool data_in_place_ = false;
  bool lost_ = false;
  bool finished_ = false;
};

// One task's part, checked: CRC, sizes, and every array inside the data.
struct CheckpointPart {
  v1::CheckpointManifest manifest;
  std::string data;

  // The `length` floats, or keys, at a byte offset of the manifest; `out` has room for them.
  void Copy(uint64_t at, int64_t length, float* out) const;
  void Copy(uint64_t at, int64_t length, uint64_t* out) const;
};

// Removes the files of this part that writers have not finished. OK if there is no such directory.
absl::Status RemoveUnfinishedPart(const std::string& directory, const std::string& part);

// Whether the server of this index is one of those whose parts hold every chunk.
bool IsServerOf(const v1::CheckpointManifest& manifest, uint32_t index);

// NotFound: no manifest, hence no whole part. Unimplemented: a newer format_version. FailedPrecondition: the part is of
// another cut than the one with the id `cut_id` (0: any, also none); says of which. DataLoss: anything that does not
// fit, with both values.
absl::StatusOr<CheckpointPart> ReadCheckpointPart(const std::string& directory, v1::TaskId::Role role, uint32_t index,
                                                  uint64_t cut_id = 0);

// A part's manifest alone, checked against the size of its data. Errors of ReadCheckpointPart.
absl::StatusOr<v1::CheckpointManifest> ReadCheckpointManifest(const std::string& directory, v1::TaskId::Role role,
                                                              uint32_t index, uint64_t cut_id = 0);

// At most `bytes` of a part's data file from `offset` on, not checked; fewer if it ends before. Errors of ReadFile.
absl::StatusOr<std::string> ReadCheckpointData(const std::string& directory, v1::TaskId::Role role, uint32_t index,
                                               uint64_t offset, size_t bytes);

// Indices of the servers whose parts make up the checkpoint, ascending: what the file `cut` says, otherwise what a part
// does. Looks at their manifests and at the sizes of their data. NotFound names the server whose part is missing, or
// says that the checkpoint was never completed: its parts are of a cut, and there is no record of that. Other errors as
// of ReadCheckpointPart; without a `cut_id`, the parts have to be of the cut of the record, or all of none.
// If `missing` is not null, it takes the first error of parts that are not there, which are then left out.
absl::StatusOr<std::vector<uint32_t>> ServersOfCheckpoint(const std::string& directory, uint64_t cut_id = 0,
                                                          absl::Status* missing = nullptr);

struct NamedTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;
};

struct Checkpoint {
  std::string job_name;
  // Of the server with the lowest index.
  v1::Plan plan;
  // Over all chunks.
  int64_t version_min = 0;
  int64_t version_max = 0;
  // In model order.
  std::vector<NamedTensor> tensors;
};

// Assembles the weights of all servers' parts, without tables. Errors as of ServersOfCheckpoint; DataLoss names the
// tensor whose chunks leave a gap, overlap or disagree.
absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& directory);

// A table's rows, without the optimizer's state.
struct NamedTable {
  std::string name;
  int64_t dimension = 0;
  // Ascending, and [keys, dimension].
  std::vector<uint64_t> keys;
  std::vector<float> rows;
};

// The tables of all servers' parts, in the order of their chunks. Errors as of ServersOfCheckpoint; DataLoss names the
// table whose shards are missing, there twice, or disagree.
absl::StatusOr<std::vector<NamedTable>> ReadCheckpointTables(const std::string& directory);

// The tensors of ReadCheckpoint.
absl::StatusOr<std::vector<NamedTensor>> ReadCheckpointTensors(const std::string& directory);

}  // namespace rubato

#endif  // RUBATO_COMMON_STORAGE_CHECKPOINT_H_
