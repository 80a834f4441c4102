#include "worker/ps_client/arrived_rows.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/codec_traits.h"
#include "kernels/codec/codec.h"

namespace rubato::worker {

size_t AnsweredRowBytes(const TableParts& table) {
  return static_cast<size_t>(MaxEncodedBytes({table.pull}, table.dimension));
}

void ArrivedRows::Decode(const TableParts& table, size_t begin, size_t count, float* out) const {
  const size_t row_bytes = AnsweredRowBytes(table), offset = begin * row_bytes, bytes = count * row_bytes;
  const auto elements = static_cast<int64_t>(count) * table.dimension;
  if (shared != nullptr) {
    rubato::Decode(table.pull, shared + offset, static_cast<int64_t>(bytes), elements, out);
  } else if (!TraitsOf(table.pull).lossy) {
    payload.CopyTo(offset, bytes, out);
  } else {
    // They may lie in several pieces.
    const auto whole = std::make_unique_for_overwrite<uint8_t[]>(bytes);
    payload.CopyTo(offset, bytes, whole.get());
    rubato::Decode(table.pull, whole.get(), static_cast<int64_t>(bytes), elements, out);
  }
}

absl::StatusOr<ArrivedRows> FindRows(const ChunkBatch& batch, const DecodedReply& reply, size_t count, size_t row_bytes,
                                     const SharedRegion* region) {
  const v1::ExchangeReply& header = reply.header;
  const auto same = [](const v1::ChunkWeights& entry, uint32_t chunk) { return entry.chunk() == chunk; };
  if (!std::equal(header.chunks().begin(), header.chunks().end(), batch.chunks.begin(), batch.chunks.end(), same)) {
    return absl::InvalidArgumentError("chunks: others than those that were asked for");
  }
  const size_t bytes = count * row_bytes;
  const size_t shared_entries = static_cast<size_t>(header.shared_size());
  const size_t expected = shared_entries > 0 ? 0 : bytes;
  if (reply.payload.size() != expected) {
    return absl::InvalidArgumentError(absl::StrCat("payload: ", reply.payload.size(), " bytes; ", count, " rows of ",
                                                   row_bytes, " bytes were asked for, and shared has ", shared_entries,
                                                   " entries"));
  }
  if (shared_entries == 0) return ArrivedRows{.shared = nullptr, .payload = reply.payload};
  if (shared_entries > 1) {
    return absl::InvalidArgumentError(absl::StrCat("shared: ", shared_entries, " entries; the rows have 1"));
  }
  const v1::SharedSpan& span = header.shared(0);
  const uint8_t* rows = nullptr;
  if (region != nullptr && span.bytes() == bytes) rows = region->Find(span.offset(), bytes);
  if (rows != nullptr) return ArrivedRows{.shared = rows, .payload = {}};
  return absl::InvalidArgumentError(absl::StrCat("shared[0]: ", span.bytes(), " bytes from ", span.offset(),
                                                 "; the rows take ", bytes, " and the server's shared memory has ",
                                                 region == nullptr ? 0 : region->size()));
}

}  // namespace rubato::worker
