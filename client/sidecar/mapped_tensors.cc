#include "client/sidecar/mapped_tensors.h"

#include "common/status.h"

namespace rubato::client {

absl::StatusOr<std::unique_ptr<MappedTensors>> MappedTensors::Create(TensorLayout layout, FileDescriptor memfd) {
  RUBATO_ASSIGN_OR_RETURN(std::shared_ptr<SharedRegion> region,
                          SharedRegion::Adopt(std::move(memfd), layout.total_bytes));
  return std::unique_ptr<MappedTensors>(new MappedTensors(std::move(layout), std::move(region)));
}

}  // namespace rubato::client
