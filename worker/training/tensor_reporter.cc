#include "worker/training/tensor_reporter.h"

#include <utility>

#include "common/status.h"
#include "worker/ps_client/tensor_statistics.h"

namespace rubato::worker {

void TensorReporter::BeginStep(int64_t steps_done) {
  report_.Clear();
  describes_step_ = options_.every_steps > 0 && steps_done % options_.every_steps == 0 && options_.is_reporter();
}

absl::Status TensorReporter::OnLayer(const LayerSpec& layer) {
  for (int tensor : layer.tensors) {
    RUBATO_RETURN_IF_ERROR(Add(tensor, v1::TensorStatistics::WEIGHTS, options_.model->weight(tensor)));
    RUBATO_RETURN_IF_ERROR(Add(tensor, v1::TensorStatistics::GRADIENT, options_.model->gradient(tensor)));
  }
  return absl::OkStatus();
}

absl::Status TensorReporter::Add(int tensor, v1::TensorStatistics::Kind kind, const DeviceTensor& elements) {
  const float* data = options_.backend->HostPointer(elements);
  if (data == nullptr) {
    copy_.resize(static_cast<size_t>(elements.elements()));
    RUBATO_RETURN_IF_ERROR(options_.backend->CopyToHost(elements, 0, elements.elements(), copy_.data()));
    data = copy_.data();
  }
  RUBATO_RETURN_IF_ERROR(options_.backend->Synchronize());
  v1::TensorStatistics* statistics = report_.add_tensors();
  *statistics = DescribeTensor({data, static_cast<size_t>(elements.elements())});
  statistics->set_tensor(options_.spec->tensors[tensor].name);
  statistics->set_kind(kind);
  return absl::OkStatus();
}

void TensorReporter::EndStep(int64_t step) {
  if (!describes_step_ || report_.tensors().empty()) return;
  report_.set_step(step);
  options_.send(std::exchange(report_, {}));
}

}  // namespace rubato::worker
