#ifndef RUBATO_WORKER_NN_CAPTURED_PASSES_H_
#define RUBATO_WORKER_NN_CAPTURED_PASSES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace rubato::worker {

// The passes over one layer in one direction that a device has done before, and can do again by itself. One thread at a
// time.
class CapturedPasses {
 public:
  // What tells a pass from the others: where its tensors are, and how it is done.
  struct Key {
    const DeviceBuffer* x = nullptr;
    const DeviceBuffer* y = nullptr;
    const DeviceBuffer* dy = nullptr;
    const DeviceBuffer* input_gradient_sum = nullptr;
    bool accumulate = false;

    friend bool operator==(const Key&, const Key&) = default;
  };

  // The result of `pass`, which calls the backend's operations and does nothing else that the next pass or the caller
  // sees; so it need not be called if the key is that of an earlier pass. All have batches of the same size.
  absl::StatusOr<DeviceTensor> Run(Backend* backend, const Key& key,
                                   absl::FunctionRef<absl::StatusOr<DeviceTensor>()> pass);

 private:
  struct Known {
    Key key;
    std::unique_ptr<GraphReplay> work;
    DeviceTensor result;
  };

  std::vector<Known> known_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_NN_CAPTURED_PASSES_H_
