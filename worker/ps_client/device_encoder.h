#ifndef RUBATO_WORKER_PS_CLIENT_DEVICE_ENCODER_H_
#define RUBATO_WORKER_PS_CLIENT_DEVICE_ENCODER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "proto/coordinator.pb.h"
#include "worker/nn/model.h"
#include "worker/ps_client/gradient_encoder.h"

namespace rubato::worker {

// Encodes gradients in the memory of a device, so that only the encoded bytes are copied to the host. The
// error-feedback residual stays on the device too, or is on the host while gradients are sent as they are. Enqueue and
// the residuals by the backend's thread.
//
//   RUBATO_RETURN_IF_ERROR(encoder->Enqueue(tensor, step));
//   RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<Event> encoded, backend->Record());
//   ...                                                  // encoded->Done()
//   absl::Span<const uint8_t> encoded = encoder->Encoded(chunk);
class DeviceEncoder : public GradientEncoder {
 public:
  struct Options {
    // Both outlive the encoder.
    const Model* model = nullptr;
    Backend* backend = nullptr;
    // By tensor.
    std::vector<CodecSpec> codecs;
    // Of the job, and the worker's index.
    uint64_t seed = 0;
    uint32_t worker = 0;
  };

  // ResourceExhausted: no memory for the encoded bytes.
  static absl::StatusOr<std::unique_ptr<DeviceEncoder>> Create(const v1::JobDescription& job, const Options& options);

  // Whether the tensor's gradient is encoded; otherwise the host needs all of it.
  bool Encodes(int tensor) const { return options_.codecs[tensor].codec != v1::NONE; }
  // Enqueues the encoding of a tensor's gradient and the copies of the encoded bytes, which may be read once an event
  // that is recorded afterwards is done. What was encoded of the chunks before must not be needed any more. Internal:
  // the device refused.
  absl::Status Enqueue(int tensor, int64_t step);

  // Begins with what residual() holds; and brings there the residual as it is now, for a copy, or to stay until
  // UseResiduals. Internal: the device failed.
  absl::Status UseResiduals();
  absl::Status FetchResiduals();
  absl::Status KeepResidualsOnHost();

  v1::Codec codec(uint32_t chunk) const override {
    return chunks_[chunk].compressed ? chunks_[chunk].codec.codec : v1::NONE;
  }
  // Enqueue has encoded it. REQUIRES: KeepResidualsOnHost, unless `compress`.
  void EncodeChunk(uint32_t chunk, float* gradient, int64_t step, bool compress) override;
  absl::Span<const uint8_t> Encoded(uint32_t chunk) const override;
  std::vector<float>* residual(uint32_t chunk) override { return &chunks_[chunk].residual; }

 private:
  struct Chunk {
    CodecSpec codec;
    int64_t offset = 0;
    int64_t elements = 0;
    DeviceTensor encoded;
    DeviceTensor device_residual;
    // Copies of them.
    std::shared_ptr<void> bytes;
    std::vector<float> residual;
    bool compressed = true;
  };

  explicit DeviceEncoder(const Options& options) : options_(options), chunks_of_tensor_(options.codecs.size()) {}
  absl::Status Add(const v1::ChunkPlacement& placement);

  const Options options_;
  std::vector<Chunk> chunks_;
  std::vector<std::vector<uint32_t>> chunks_of_tensor_;
  bool residuals_on_host_ = false;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_DEVICE_ENCODER_H_
