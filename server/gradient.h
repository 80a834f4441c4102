#ifndef RUBATO_SERVER_GRADIENT_H_
#define RUBATO_SERVER_GRADIENT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/optimizer/reduce_and_apply.h"
#include "proto/job_config.pb.h"

namespace rubato::server {

// A worker's gradient for one chunk, still where it arrived: in the slices of a message or in the worker's shared
// memory, and as the worker packed it. Immutable.
struct Gradient {
  // Keeps the pieces alive.
  std::shared_ptr<const void> owner;
  v1::Codec codec = v1::NONE;
  // NONE: cut anywhere. Other codecs: one piece.
  std::vector<GradientPiece> pieces;
};

// Whether no element of the chunk's `length` is NaN or infinite.
bool IsFinite(const Gradient& gradient, int64_t length);

}  // namespace rubato::server

#endif  // RUBATO_SERVER_GRADIENT_H_
