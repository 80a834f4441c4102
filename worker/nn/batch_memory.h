#ifndef RUBATO_WORKER_NN_BATCH_MEMORY_H_
#define RUBATO_WORKER_NN_BATCH_MEMORY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/device_tensor.h"

namespace rubato::worker {

// A device's memory for the inputs and labels of two batches: while one is computed with, the other is copied. Used by
// one thread at a time, the backend's.
class BatchMemory {
 public:
  struct Options {
    // Outlives the memory.
    Backend* backend = nullptr;
    // Whether its memory is the host's (HostPointer).
    bool on_host = false;
    // Of the largest batch. Elements of all types have 4 bytes.
    Shape inputs, labels;
    ElementType input_type = ElementType::kFloat32, label_type = ElementType::kFloat32;
  };
  // A batch as it is on the host: rows of the inputs' and of the labels' elements.
  struct Examples {
    const void* inputs = nullptr;
    const void* labels = nullptr;
    int64_t count = 0;
  };

  // Errors of Backend::Allocate.
  static absl::StatusOr<BatchMemory> Create(const Options& options);

  // Has examples copied to where the current batch is not; what was staged before and never begun is forgotten. They
  // may be changed as soon as it returns. Does not wait for the device, unless what is replaced was staged just now.
  absl::Status Stage(const Examples& examples);
  // What was staged last becomes the current batch. FailedPrecondition: nothing has been, since the last call.
  absl::Status Begin();

  // The current batch, of 0 examples at first.
  int64_t count() const { return slots_[current_].count; }
  DeviceTensor inputs() const { return slots_[current_].inputs.Rows(count()); }
  DeviceTensor labels() const { return slots_[current_].labels.Rows(count()); }

 private:
  struct Slot {
    DeviceTensor inputs, labels;
    int64_t count = 0;
    // Of a device with memory of its own: from where it copies, allocated with the first batch (a backend that only
    // plans has no such memory), and the last such copy; null if there was none.
    std::shared_ptr<void> host_inputs, host_labels;
    std::unique_ptr<Event> copied;
  };

  BatchMemory(Backend* backend, bool on_host) : backend_(backend), on_host_(on_host) {}

  // Through the slot's host memory.
  absl::Status CopyStaged(const Examples& examples, Slot* slot);

  Backend* backend_;
  bool on_host_;
  std::array<Slot, 2> slots_;
  size_t current_ = 0;
  bool staged_ = false;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_NN_BATCH_MEMORY_H_
