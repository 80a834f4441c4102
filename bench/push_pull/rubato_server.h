#ifndef RUBATO_BENCH_PUSH_PULL_RUBATO_SERVER_H_
#define RUBATO_BENCH_PUSH_PULL_RUBATO_SERVER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/push_pull/subject.h"
#include "common/model_spec.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"

namespace rubato::bench {

// A job of one server and one worker in ASYNC: a tensor for each of the setup's chunks, placed in chunks and sent in
// messages no larger than suits the transport; zero at first, and SGD with learning rate 1, so that a
// gradient of -g adds g. There is no coordinator: both sides know the job from the setup.
struct RubatoJob {
  v1::JobConfig config;
  ModelSpec model;
  v1::JobDescription description;
  v1::Plan plan;
  int message_chunks = 1;

  // Names of the model's tensors.
  std::vector<std::string> TensorNames() const;
};

// `server` is where the server is, as it says of itself; absent on the server. InvalidArgument: the setup's size.
absl::StatusOr<RubatoJob> MakeRubatoJob(const Setup& setup, v1::ClusterConfig::SharedMemory shared_memory,
                                        const v1::ServerInfo& server);

v1::TaskId RubatoWorker();

// The real server. Tells `ready` its v1::ServerInfo as text.
absl::Status ServeRubatoJob(const Setup& setup, v1::ClusterConfig::SharedMemory shared_memory, const Ready& ready);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_PUSH_PULL_RUBATO_SERVER_H_
