#ifndef RUBATO_COORDINATOR_TESTING_SMALL_JOB_H_
#define RUBATO_COORDINATOR_TESTING_SMALL_JOB_H_

#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/task.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"

namespace rubato::coordinator {

// A job for tests, and what its tasks say to the coordinator.

inline constexpr uint64_t kConfigFingerprint = 0xc0ffee;
inline constexpr int64_t kTrainExamples = 100;

inline v1::TaskId MakeTask(v1::TaskId::Role role, uint32_t index, uint64_t incarnation) {
  v1::TaskId task;
  task.set_role(role);
  task.set_index(index);
  task.set_incarnation(incarnation);
  return task;
}
inline v1::TaskId ServerTask(uint32_t index, uint64_t incarnation = 1) {
  return MakeTask(v1::TaskId::SERVER, index, incarnation);
}
inline v1::TaskId WorkerTask(uint32_t index, uint64_t incarnation = 1) {
  return MakeTask(v1::TaskId::WORKER, index, incarnation);
}
inline v1::TaskId EvaluatorTask(uint64_t incarnation = 1) { return MakeTask(v1::TaskId::EVALUATOR, 0, incarnation); }

// Two servers, two workers, two epochs of ten shards.
inline v1::JobConfig SmallJob() {
  v1::JobConfig config;
  config.set_name("small");
  config.mutable_cluster()->set_servers(2);
  config.mutable_cluster()->set_workers(2);
  config.mutable_cluster()->set_chunk_bytes(4096);
  config.mutable_cluster()->set_partitions_per_server(1);
  config.mutable_cluster()->set_lease_seconds(5);
  config.mutable_cluster()->set_start_timeout_seconds(60);
  config.mutable_cluster()->set_wait_timeout_seconds(600);
  config.mutable_model()->add_input_shape(8);
  auto* layer = config.mutable_model()->add_layers();
  layer->set_name("linear0");
  layer->mutable_linear()->set_units(4);
  config.mutable_model()->set_loss(v1::ModelConfig::SOFTMAX_CROSS_ENTROPY);
  config.mutable_data()->set_dispatch(v1::DataConfig::DYNAMIC);
  config.mutable_data()->set_shard_examples(10);
  config.mutable_consistency()->set_mode(v1::SYNC);
  config.mutable_consistency()->set_policy(v1::ConsistencyConfig::SCHEDULE);
  config.mutable_training()->set_epochs(2);
  config.mutable_training()->set_batch_size(5);
  config.mutable_evaluation()->set_every_epochs(1);
  config.mutable_cluster()->set_server_grace_seconds(10);
  config.mutable_checkpoint()->set_keep(2);
  return config;
}

// How a task registers.
inline v1::Register RegistrationOf(const v1::TaskId& task, uint64_t fingerprint = kConfigFingerprint) {
  v1::Register registration;
  registration.set_protocol_version(kProtocolVersion);
  registration.set_config_fingerprint(fingerprint);
  if (task.role() == v1::TaskId::SERVER) registration.set_address(":900");
  if (task.role() == v1::TaskId::WORKER) registration.set_train_examples(kTrainExamples);
  return registration;
}

// What a server answers at once, without the sender; nothing if it has nothing to say. `started` is the highest step
// that was begun there.
inline std::optional<v1::TaskMessage> ServerAnswer(const v1::Directive& directive, int64_t started) {
  v1::TaskMessage message;
  if (directive.has_announce()) {
    message.mutable_announce_ack()->set_generation(directive.announce().generation());
    message.mutable_announce_ack()->set_highest_started_step(started);
  } else if (directive.has_commit()) {
    message.mutable_plan_ack()->set_generation(directive.commit().plan().generation());
    message.mutable_plan_ack()->set_amendment(directive.commit().plan().amendment());
  } else if (directive.has_checkpoint()) {
    message.mutable_checkpoint_done()->set_name(directive.checkpoint().name());
  } else {
    return std::nullopt;
  }
  return message;
}

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_TESTING_SMALL_JOB_H_
