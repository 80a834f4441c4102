#ifndef RUBATO_CLI_REPLAY_REPLAY_PARAMETERS_H_
#define RUBATO_CLI_REPLAY_REPLAY_PARAMETERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/replay/recorded_run.h"
#include "cli/replay/replay_servers.h"
#include "common/model_spec.h"
#include "proto/coordinator.pb.h"
#include "server/table_message.h"
#include "worker/ps_client/gradient_encoder.h"
#include "worker/ps_client/parameters.h"
#include "worker/ps_client/ps_client.h"
#include "worker/ps_client/table_parts.h"

namespace rubato {

// The parameter servers as a trainer of a replay sees them: one member's recorded steps, one after another, none of
// which is ever moved. Keys, gradients and rows of tables become the bytes that a worker sends and a server answers
// with, and are read as these read them. Used by the trainer's thread.
class ReplayParameters : public worker::Parameters {
 public:
  struct Options {
    // All outlive the object.
    const v1::JobDescription* job = nullptr;
    const ModelSpec* model = nullptr;
    // The job's.
    uint64_t seed = 0;
    const RecordedRun* run = nullptr;
    // Index of the run's members.
    size_t member = 0;
    ReplayServers* servers = nullptr;
    worker::PsClient::TensorMemory* memory = nullptr;
    worker::GradientEncoder* encoder = nullptr;
  };

  explicit ReplayParameters(const Options& options);

  // After the last recorded step: the one after it.
  Step next_step() override;
  absl::StatusOr<bool> AwaitTensor(int tensor) override;
  void Restart() override {}
  absl::StatusOr<bool> BeginStep(Step* step) override;
  void PushTensor(int tensor, const Pushed& pushed) override;
  void AskRows(int table, const std::vector<uint64_t>& keys) override;
  absl::StatusOr<bool> AwaitRows(int table) override;
  const float* rows(int table) override { return tables_[static_cast<size_t>(table)].rows.data(); }
  void PushRows(int table, const std::vector<uint64_t>& keys, const std::vector<float>& gradients,
                const Pushed& pushed) override;
  absl::Status AwaitAcknowledgements() override;

  // The next step has no batch: it needs no rows. Before it waits for anything.
  void AskNothing();

 private:
  // A table of the model, in one message with all its shards.
  struct Table {
    worker::TableParts parts;
    // By shard.
    std::vector<uint32_t> chunks;
    size_t asked = 0;
    // Asked for, and not awaited yet.
    bool is_open = false;
    std::vector<float> rows;
  };

  // What a server reads of keys that are asked for, or, with gradients, pushed.
  absl::StatusOr<std::shared_ptr<const server::TableMessage>> MessageOf(int table, const std::vector<uint64_t>& keys,
                                                                        const std::vector<float>* gradients) const;
  const std::vector<RecordedRun::Step>& steps() const { return options_.run->members[options_.member].steps; }

  const Options options_;
  // By tensor.
  std::vector<std::vector<uint32_t>> chunks_;
  std::vector<Table> tables_;
  // Of the step to begin next.
  size_t next_ = 0;
  // Of the step that was begun last.
  bool compress_ = true;
  // The first error of what has no way to return it.
  absl::Status failed_;
};

}  // namespace rubato

#endif  // RUBATO_CLI_REPLAY_REPLAY_PARAMETERS_H_
