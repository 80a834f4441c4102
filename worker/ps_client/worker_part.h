#ifndef RUBATO_WORKER_PS_CLIENT_WORKER_PART_H_
#define RUBATO_WORKER_PS_CLIENT_WORKER_PART_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/checkpoint.pb.h"
#include "proto/parameter_server.pb.h"

namespace rubato::worker {

// What a worker keeps from one step to the next, as its part of a checkpoint (common/storage/checkpoint.h) has it. With
// it and the weights the worker goes on as if nothing had been.
struct WorkerPart {
  struct Chunk {
    // Which elements of which tensor, as the job cuts them, and the local optimizer's updates. Where the arrays are in
    // the file is left out.
    v1::ChunkRecord record;
    // The codec's error-feedback residual, an element each. Empty: it keeps nothing back.
    std::vector<float> residual;
    // Of the local optimizer, as long. Empty: it has none.
    std::vector<std::vector<float>> slots;
  };

  // Those of which something is kept, in order of their index.
  std::vector<Chunk> chunks;
  v1::WorkerState state;

  bool empty() const { return chunks.empty() && state.loss_scale() == 0; }
  // Of all arrays.
  int64_t bytes() const;
};

// Writes the part, which is not empty, and waits until it is on the disk. A chunk with slots alone gets a residual of
// zeros. `manifest` says job_name, servers, plan and cut; the rest is filled in. Errors of CheckpointWriter.
absl::Status WriteWorkerPart(const std::string& directory, const v1::TaskId& task, const WorkerPart& part,
                             v1::CheckpointManifest manifest);

// Fills the arrays of `part`, which have their sizes, with what worker `index` has written, in however many chunks, and
// its records' updates and its state. Slots that `part` has no room for are left out. False, and `part` as it was, when
// there is nothing of that worker, or nothing to fill, or `cut` is not null and the part is of another one. Errors of
// ReadCheckpointPart; FailedPrecondition if a tensor has another shape or other slots, or is not all there. `part`
// is undefined after an error.
absl::StatusOr<bool> ReadWorkerPart(const std::string& directory, uint32_t index, const v1::Cut* cut, WorkerPart* part);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_WORKER_PART_H_
