#include "common/wire/payload_view.h"

#include <algorithm>
#include <utility>

#include "common/streaming_copy.h"

namespace rubato {

PayloadView::PayloadView(std::vector<grpc::Slice> slices, size_t offset, size_t bytes) {
  if (bytes == 0) return;
  auto body = std::make_shared<Body>();
  body->slices = std::move(slices);
  body->pieces.reserve(body->slices.size());
  body->starts.reserve(body->slices.size());
  for (const grpc::Slice& slice : body->slices) {
    if (body->bytes == bytes) break;
    if (offset >= slice.size()) {
      offset -= slice.size();
      continue;
    }
    const size_t part = std::min(bytes - body->bytes, slice.size() - offset);
    body->pieces.emplace_back(slice.begin() + offset, part);
    body->starts.push_back(body->bytes);
    body->bytes += part;
    offset = 0;
  }
  body_ = std::move(body);
}

const void* PayloadView::Contiguous(size_t offset, size_t bytes) const {
  if (bytes == 0 || !Holds(offset, bytes)) return nullptr;
  const size_t at = PieceAt(offset);
  const size_t skip = offset - body_->starts[at];
  const ByteSpan piece = pieces()[at];
  return bytes <= piece.size() - skip ? piece.data() + skip : nullptr;
}

template <typename Take>
void PayloadView::ForEachPiece(size_t offset, size_t bytes, Take take) const {
  if (bytes == 0) return;
  size_t at = PieceAt(offset);
  size_t skip = offset - body_->starts[at];
  for (; bytes > 0; ++at, skip = 0) {
    const ByteSpan part = pieces()[at].subspan(skip, bytes);
    take(part);
    bytes -= part.size();
  }
}

bool PayloadView::AppendPieces(size_t offset, size_t bytes, std::vector<ByteSpan>* out) const {
  if (!Holds(offset, bytes)) return false;
  ForEachPiece(offset, bytes, [out](ByteSpan piece) { out->push_back(piece); });
  return true;
}

bool PayloadView::CopyTo(size_t offset, size_t bytes, void* out) const {
  if (!Holds(offset, bytes)) return false;
  uint8_t* to = static_cast<uint8_t*>(out);
  ForEachPiece(offset, bytes, [&to](ByteSpan piece) {
    ColdCopy(to, piece.data(), piece.size());
    to += piece.size();
  });
  return true;
}

size_t PayloadView::PieceAt(size_t offset) const {
  const auto after = std::upper_bound(body_->starts.begin(), body_->starts.end(), offset);
  return static_cast<size_t>(after - body_->starts.begin()) - 1;
}

}  // namespace rubato
