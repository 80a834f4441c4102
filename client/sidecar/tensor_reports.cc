#include "client/sidecar/tensor_reports.h"

#include <cstddef>

#include "common/shape.h"
#include "worker/ps_client/tensor_statistics.h"

namespace rubato::client {

void TensorReports::BeginStep(int64_t steps_done) {
  report_.Clear();
  describes_step_ = options_.every_steps > 0 && steps_done % options_.every_steps == 0 && options_.is_reporter();
}

void TensorReports::BeforePush(int tensor, bool absent) {
  if (!describes_step_) return;
  Add(tensor, v1::TensorStatistics::WEIGHTS, options_.memory->Weights(tensor, 0));
  if (!absent) Add(tensor, v1::TensorStatistics::GRADIENT, options_.memory->Gradient(tensor, 0));
}

void TensorReports::Add(int tensor, v1::TensorStatistics::Kind kind, const float* elements) {
  const TensorSpec& spec = options_.spec->tensors[tensor];
  v1::TensorStatistics* statistics = report_.add_tensors();
  *statistics = worker::DescribeTensor({elements, static_cast<size_t>(NumElements(spec.shape))});
  statistics->set_tensor(spec.name);
  statistics->set_kind(kind);
}

void TensorReports::EndStep(int64_t step) {
  if (!describes_step_ || report_.tensors().empty()) return;
  report_.set_step(step);
  options_.send(std::exchange(report_, {}));
}

}  // namespace rubato::client
