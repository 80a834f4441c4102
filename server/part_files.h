#ifndef RUBATO_SERVER_PART_FILES_H_
#define RUBATO_SERVER_PART_FILES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/storage/checkpoint.h"
#include "proto/checkpoint.pb.h"
#include "proto/parameter_server.pb.h"
#include "server/chunk_snapshot.h"

namespace rubato::server {

// This server's part of a checkpoint.
struct Part {
  // Of its directory in the checkpoint directory.
  std::string name;
  // Id 0: the checkpoint is of no cut.
  v1::Cut cut;
  v1::Plan plan;
  // Of all partitions. Their records' values_at and slots_at are PartFiles', and so is their order.
  std::vector<ChunkSnapshot> chunks;
  // What attempts that failed have written. Null: the next one begins anew.
  std::unique_ptr<CheckpointWriter> unfinished;
  // The arrays of all chunks as they come in the file, and how many of them are there: those that records have places
  // of.
  struct Array {
    enum class What { kWeights, kSlot, kPushCounts, kKeys, kRows };
    size_t chunk;
    What what;
    size_t slot = 0;
  };
  std::vector<Array> arrays;
  size_t written = 0;
  // Where the next array begins in the file, if it is there in part.
  std::optional<uint64_t> begun;
  // Where the counts and keys are of the shard whose rows come next.
  uint64_t push_counts_at = 0;
  uint64_t keys_at = 0;
  // Of what is written something is held no more.
  bool let_go = false;
};

// One server's parts in the checkpoint directory. Thread-safe; blocks for as long as the disk does.
class PartFiles {
 public:
  struct Options {
    // The checkpoint directory.
    std::string directory;
    v1::TaskId task;
    std::string job_name;
    // Indices of all servers of the job, ascending.
    std::vector<uint32_t> servers;
  };

  explicit PartFiles(Options options) : options_(std::move(options)) {}

  // Writes the part and returns the bytes of its data once all of it is on the disk. `cancelled` is asked now and then;
  // Cancelled when it says yes. InvalidArgument: `part.name` is no IsCheckpointName. Other errors are the disk's, after
  // which an earlier part of that name may be gone.
  // Arrays are let go of as soon as they are on the disk, so that updates can have them, if the file system writes past
  // the page cache; whoever tries again after an error gives the same part. DataLoss: the disk did not keep what was
  // let go of, and no attempt will succeed.
  absl::StatusOr<int64_t> Write(Part& part, const std::function<bool()>& cancelled) const;

 private:
  absl::Status Begin(Part& part) const;
  absl::Status WriteArrays(Part& part, const std::function<bool()>& cancelled) const;
  absl::Status Finish(Part& part) const;

  const Options options_;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_PART_FILES_H_
