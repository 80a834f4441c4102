#ifndef RUBATO_SERVER_PART_FILES_H_
#define RUBATO_SERVER_PART_FILES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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
  // Of all partitions.
  std::vector<ChunkSnapshot> chunks;
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
  // Cancelled when it says yes. InvalidArgument: `part.name` is no IsCheckpointName. Other errors are the disk's. After
  // an error an earlier part of that name may be gone.
  absl::StatusOr<int64_t> Write(const Part& part, const std::function<bool()>& cancelled) const;

 private:
  const Options options_;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_PART_FILES_H_
