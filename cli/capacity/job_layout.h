#ifndef RUBATO_CLI_CAPACITY_JOB_LAYOUT_H_
#define RUBATO_CLI_CAPACITY_JOB_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"
#include "worker/ps_client/batching.h"

namespace rubato::capacity {

// A layer that has tensors: what its forward pass waits for, and what may be sent after its backward pass.
struct LayerExchange {
  std::string name;
  // Batches that hold a part of its tensors.
  std::vector<int> needed;
  // Batches whose last tensor is pushed with this layer, in the order in which they are.
  std::vector<int> due;
};

// What moves in a job: chunks, where they are and which travel together, by production's own rules. Pure data.
struct JobLayout {
  v1::JobConfig config;
  // Chunks with their places, and servers without addresses.
  v1::JobDescription job;
  // The plan that the job starts in, of all workers.
  v1::Plan plan;
  worker::Batching batching;
  // In the order of the forward pass; layers without tensors belong to the one before.
  std::vector<LayerExchange> layers;
  // By chunk: its weights in bytes of float32.
  std::vector<int64_t> chunk_bytes;
  // By batch: payload of a push and of its answer, as they are encoded.
  std::vector<int64_t> pushed_bytes;
  std::vector<int64_t> pulled_bytes;

  int workers() const { return plan.members_size(); }
  int servers() const { return job.servers_size(); }
  int partitions_per_server() const { return static_cast<int>(config.cluster().partitions_per_server()); }
  int batches() const { return static_cast<int>(batching.batches.size()); }
};

// `in_place`: servers read tensors where they are, through shared memory on one host, so that messages may be larger.
// InvalidArgument: the model is a client's, which has no layers; or as of BuildModelSpec and SplitIntoChunks.
absl::StatusOr<JobLayout> MakeJobLayout(const v1::JobConfig& config, bool in_place);

}  // namespace rubato::capacity

#endif  // RUBATO_CLI_CAPACITY_JOB_LAYOUT_H_
