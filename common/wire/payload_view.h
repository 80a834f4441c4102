#ifndef RUBATO_COMMON_WIRE_PAYLOAD_VIEW_H_
#define RUBATO_COMMON_WIRE_PAYLOAD_VIEW_H_

#include <grpcpp/support/slice.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "common/byte_span.h"

namespace rubato {

// A message's payload where gRPC received it: pieces of slices, in order. Keeps the slices alive. Immutable, and safe
// to read from several threads; copies are cheap and share the slices, and pointers into them are valid as long as one
// copy lives. Nothing is aligned: floats are to be loaded as if by memcpy.
//
//   if (const void* piece = payload.Contiguous(offset, bytes); piece == nullptr) payload.CopyTo(offset, bytes, copy);
class PayloadView {
 public:
  // Of no bytes.
  PayloadView() = default;
  // The bytes [offset, offset + bytes) of `slices` taken as one piece. REQUIRES: they are there.
  PayloadView(std::vector<grpc::Slice> slices, size_t offset, size_t bytes);

  size_t size() const { return body_ == nullptr ? 0 : body_->bytes; }
  // One after another they are the payload. None is empty.
  absl::Span<const ByteSpan> pieces() const {
    return body_ == nullptr ? absl::Span<const ByteSpan>() : absl::MakeConstSpan(body_->pieces);
  }

  // The bytes [offset, offset + bytes) if they lie in one piece; null otherwise, or when they are not all there.
  const void* Contiguous(size_t offset, size_t bytes) const;

  // Adds the bytes [offset, offset + bytes), in pieces, to `out`. Returns false, and adds nothing, when they are not
  // all there.
  bool AppendPieces(size_t offset, size_t bytes, std::vector<ByteSpan>* out) const;

  // Returns false, and writes nothing, when [offset, offset + bytes) is not in the payload.
  bool CopyTo(size_t offset, size_t bytes, void* out) const;

 private:
  static constexpr size_t kPiecesUsual = 2;

  // Shared, not copied with the view: short slices hold their bytes within themselves.
  struct Body {
    // All of the message's, where they stay.
    std::vector<grpc::Slice> slices;
    absl::InlinedVector<ByteSpan, kPiecesUsual> pieces;
    absl::InlinedVector<size_t, kPiecesUsual> starts;  // Of each piece, in the payload.
    size_t bytes = 0;
  };

  // Calls take(ByteSpan) for each piece of [offset, offset + bytes), in order. REQUIRES: they are all there.
  template <typename Take>
  void ForEachPiece(size_t offset, size_t bytes, Take take) const;
  // The piece that holds the byte at `offset`, which is in the payload.
  size_t PieceAt(size_t offset) const;
  bool Holds(size_t offset, size_t bytes) const { return offset <= size() && bytes <= size() - offset; }

  // Null: no bytes.
  std::shared_ptr<const Body> body_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_WIRE_PAYLOAD_VIEW_H_
