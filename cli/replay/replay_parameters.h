#ifndef RUBATO_CLI_REPLAY_REPLAY_PARAMETERS_H_
#define RUBATO_CLI_REPLAY_REPLAY_PARAMETERS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/replay/recorded_run.h"
#include "cli/replay/replay_servers.h"
#include "proto/coordinator.pb.h"
#include "worker/ps_client/gradient_encoder.h"
#include "worker/ps_client/parameters.h"
#include "worker/ps_client/ps_client.h"

namespace rubato {

// The parameter servers as a trainer of a replay sees them: one member's recorded steps, one after another, none of
// which is ever moved. Used by the trainer's thread.
class ReplayParameters : public worker::Parameters {
 public:
  struct Options {
    // All outlive the object.
    const v1::JobDescription* job = nullptr;
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
  absl::Status AwaitAcknowledgements() override;

 private:
  const std::vector<RecordedRun::Step>& steps() const { return options_.run->members[options_.member].steps; }

  const Options options_;
  // By tensor.
  std::vector<std::vector<uint32_t>> chunks_;
  // Of the step to begin next.
  size_t next_ = 0;
  // Of the step that was begun last.
  bool compress_ = true;
  // The first error of a push, which has no way to return it.
  absl::Status failed_;
};

}  // namespace rubato

#endif  // RUBATO_CLI_REPLAY_REPLAY_PARAMETERS_H_
