#ifndef RUBATO_CLIENT_SIDECAR_MAPPED_TENSORS_H_
#define RUBATO_CLIENT_SIDECAR_MAPPED_TENSORS_H_

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "client/link/tensor_layout.h"
#include "common/file_descriptor.h"
#include "common/shared_memory/arena.h"
#include "common/shared_memory/region.h"
#include "worker/ps_client/ps_client.h"

namespace rubato::client {

// The client's weights and gradients, where the client has them. Thread-safe as far as the client keeps its promises
// about who uses which tensor when.
class MappedTensors : public worker::PsClient::TensorMemory {
 public:
  // Maps the memory that came with the model. InvalidArgument: it is not of that model.
  static absl::StatusOr<std::unique_ptr<MappedTensors>> Create(TensorLayout layout, FileDescriptor memfd);

  float* Weights(int tensor, int64_t offset) override { return At(layout_.tensors[tensor].weights) + offset; }
  // Also where the client reads what it has asked for, between a step's begin and its first push.
  float* Gradient(int tensor, int64_t offset) override { return At(layout_.tensors[tensor].gradient) + offset; }

  // For one incarnation of the worker: servers on this host may read the memory, and what is sent instead of gradients
  // has its room behind the tensors. What an earlier one has put there is of no use any more.
  absl::StatusOr<std::shared_ptr<SharedArena>> MakeArena() const {
    return SharedArena::Wrap(region_, layout_.tensor_bytes);
  }

 private:
  MappedTensors(TensorLayout layout, std::shared_ptr<SharedRegion> region)
      : layout_(std::move(layout)), region_(std::move(region)) {}

  float* At(size_t offset) const { return reinterpret_cast<float*>(region_->mutable_data() + offset); }

  const TensorLayout layout_;
  const std::shared_ptr<SharedRegion> region_;
};

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_SIDECAR_MAPPED_TENSORS_H_
