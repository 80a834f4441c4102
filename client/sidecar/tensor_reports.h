#ifndef RUBATO_CLIENT_SIDECAR_TENSOR_REPORTS_H_
#define RUBATO_CLIENT_SIDECAR_TENSOR_REPORTS_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "common/model_spec.h"
#include "proto/coordinator.pb.h"
#include "worker/ps_client/ps_client.h"

namespace rubato::client {

// Describes the weights and gradients of some of a client's steps for TensorBoard, as TensorReporter does for our own
// workers. Used by the thread that steps.
//
//   reports.BeginStep(steps_done);
//   reports.BeforePush(tensor, absent);  // for each tensor
//   reports.EndStep(step);
class TensorReports {
 public:
  struct Options {
    // Every so many steps, the first one included; 0: never.
    int64_t every_steps = 0;
    // Both outlive it.
    const ModelSpec* spec = nullptr;
    worker::PsClient::TensorMemory* memory = nullptr;
    // Whether this worker is the one that reports, asked when such a step begins.
    std::function<bool()> is_reporter;
    std::function<void(v1::TensorReport)> send;
  };

  explicit TensorReports(Options options) : options_(std::move(options)) {}

  // The client begins a step, after `steps_done` others. What was described of one that did not end is forgotten.
  void BeginStep(int64_t steps_done);
  // The tensor's weights are still those that the step began with, and its gradient, unless it is absent, is final.
  void BeforePush(int tensor, bool absent);
  // Sends what there is.
  void EndStep(int64_t step);

 private:
  void Add(int tensor, v1::TensorStatistics::Kind kind, const float* elements);

  const Options options_;
  bool describes_step_ = false;
  v1::TensorReport report_;
};

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_SIDECAR_TENSOR_REPORTS_H_
