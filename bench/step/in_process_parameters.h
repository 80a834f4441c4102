#ifndef RUBATO_BENCH_STEP_IN_PROCESS_PARAMETERS_H_
#define RUBATO_BENCH_STEP_IN_PROCESS_PARAMETERS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/float_buffer.h"
#include "kernels/backend.h"
#include "proto/job_config.pb.h"
#include "worker/nn/model.h"
#include "worker/ps_client/parameters.h"

namespace rubato::bench {

// A worker without servers: the optimizer is applied to the model's own weights as soon as a gradient is there. The
// limit that a parameter server is measured against. Used by one thread.
class InProcessParameters : public worker::Parameters {
 public:
  // All outlive it. The weights are initialised as a server does.
  InProcessParameters(const v1::JobConfig& config, const ModelSpec& spec, worker::Model* model, Backend* backend);

  Step next_step() override { return step_; }
  absl::StatusOr<bool> AwaitTensor(int) override { return true; }
  void Restart() override {}
  absl::StatusOr<bool> BeginStep(Step* step) override;
  void PushTensor(int tensor, const Pushed& pushed) override;
  absl::Status AwaitAcknowledgements() override { return absl::OkStatus(); }

 private:
  struct Tensor {
    float* weights;
    const float* gradient;
    int64_t elements;
    bool decays;
    std::vector<FloatBuffer::Ptr> slots;
    int64_t updates = 0;
  };

  const v1::OptimizerConfig optimizer_;
  std::vector<Tensor> tensors_;
  Step step_;
};

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_STEP_IN_PROCESS_PARAMETERS_H_
