#ifndef RUBATO_BENCH_STEP_IN_PROCESS_PARAMETERS_H_
#define RUBATO_BENCH_STEP_IN_PROCESS_PARAMETERS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/step/loopback_copies.h"
#include "common/float_buffer.h"
#include "kernels/backend.h"
#include "proto/job_config.pb.h"
#include "worker/nn/model.h"
#include "worker/ps_client/parameters.h"

namespace rubato::bench {

// A worker without servers: the optimizer is applied to the model's own weights as soon as a gradient is there. The
// limit that a parameter server is measured against. With copies, each gradient and then the weights go through TCP
// and come back to other memory, as they do with a server, which shows what of a step over TCP is the system's alone.
// Used by one thread.
class InProcessParameters : public worker::Parameters {
 public:
  // All outlive it. The weights are initialised as a server does. `copies`: null without.
  InProcessParameters(const v1::JobConfig& config, const ModelSpec& spec, worker::Model* model, Backend* backend,
                      LoopbackCopies* copies);

  Step next_step() override { return step_; }
  absl::StatusOr<bool> AwaitTensor(int) override { return true; }
  void Restart() override {}
  absl::StatusOr<bool> BeginStep(Step* step) override;
  void PushTensor(int tensor, const Pushed& pushed) override;
  absl::Status AwaitAcknowledgements() override { return copied_; }

 private:
  struct Tensor {
    float* weights;
    const float* gradient;
    int64_t elements;
    bool decays;
    std::vector<FloatBuffer::Ptr> slots;
    int64_t updates = 0;
    std::vector<char> received_gradient;
    std::vector<char> received_weights;
  };

  absl::Status Copy(Tensor* tensor);

  const v1::OptimizerConfig optimizer_;
  LoopbackCopies* const copies_;
  std::vector<Tensor> tensors_;
  Step step_;
  // The first error.
  absl::Status copied_;
};

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_STEP_IN_PROCESS_PARAMETERS_H_
