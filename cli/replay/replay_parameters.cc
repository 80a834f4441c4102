#include "cli/replay/replay_parameters.h"

#include <cstring>

#include "common/byte_span.h"
#include "common/status.h"
#include "kernels/codec/codec.h"

namespace rubato {

ReplayParameters::ReplayParameters(const Options& options) : options_(options) {
  for (int chunk = 0; chunk < options_.job->chunks_size(); ++chunk) {
    const size_t tensor = options_.job->chunks(chunk).tensor();
    if (chunks_.size() <= tensor) chunks_.resize(tensor + 1);
    chunks_[tensor].push_back(static_cast<uint32_t>(chunk));
  }
}

worker::Parameters::Step ReplayParameters::next_step() {
  const bool done = next_ == steps().size();
  const RecordedRun::Step& step = done ? steps().back() : steps()[next_];
  return {step.generation, step.step + (done ? 1 : 0), options_.run->plans.at(step.generation)};
}

absl::StatusOr<bool> ReplayParameters::AwaitTensor(int tensor) {
  RUBATO_RETURN_IF_ERROR(failed_);
  for (uint32_t chunk : chunks_[static_cast<size_t>(tensor)]) {
    RUBATO_ASSIGN_OR_RETURN(const server::ChunkStore::Wire wire,
                            options_.servers->Await(options_.member, next_, chunk));
    const v1::ChunkPlacement& place = options_.job->chunks(static_cast<int>(chunk));
    float* const weights = options_.memory->Weights(tensor, place.offset());
    if (wire.codec == v1::NONE) {
      std::memcpy(weights, wire.buffer->data(), static_cast<size_t>(wire.bytes));
    } else {
      Decode(wire.codec, reinterpret_cast<const uint8_t*>(wire.buffer->data()), wire.bytes, place.length(), weights);
    }
  }
  return true;
}

absl::StatusOr<bool> ReplayParameters::BeginStep(Step* step) {
  RUBATO_RETURN_IF_ERROR(failed_);
  *step = next_step();
  compress_ = !step->plan.uncompressed();
  ++next_;
  return true;
}

void ReplayParameters::PushTensor(int tensor, const Pushed& pushed) {
  const size_t step = next_ - 1;
  for (uint32_t chunk : chunks_[static_cast<size_t>(tensor)]) {
    const v1::ChunkPlacement& place = options_.job->chunks(static_cast<int>(chunk));
    ReplayServers::Pushed gradient = {.examples = pushed.examples, .epoch = pushed.epoch};
    if (pushed.examples > 0) {
      float* const values = options_.memory->Gradient(tensor, place.offset());
      options_.encoder->EncodeChunk(chunk, values, steps()[step].step, compress_);
      gradient.codec = options_.encoder->codec(chunk);
      gradient.bytes = gradient.codec == v1::NONE ? BytesOf(values, place.length()) : options_.encoder->Encoded(chunk);
    }
    const absl::Status status = options_.servers->Push(options_.member, step, chunk, gradient);
    if (failed_.ok()) failed_ = status;
  }
}

absl::Status ReplayParameters::AwaitAcknowledgements() {
  RUBATO_RETURN_IF_ERROR(failed_);
  return options_.servers->AwaitApplied(options_.member);
}

}  // namespace rubato
