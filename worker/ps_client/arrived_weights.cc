#include "worker/ps_client/arrived_weights.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/streaming_copy.h"
#include "kernels/codec/codec.h"

namespace rubato::worker {
namespace {

absl::Status Bad(const std::string& field, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", what));
}

absl::StatusOr<ArrivedWeights> CheckEntry(const v1::ExchangeReply& reply, int i, uint32_t chunk, int64_t length) {
  const v1::ChunkWeights& entry = reply.chunks(i);
  const std::string field = absl::StrCat("chunks[", i, "]");
  if (entry.chunk() != chunk || entry.length() != length) {
    return Bad(field, absl::StrCat("chunk ", entry.chunk(), " of length ", entry.length(), "; asked for chunk ", chunk,
                                   " of length ", length));
  }
  ArrivedWeights weights;
  if (entry.codec() == v1::CODEC_UNSPECIFIED || entry.codec() == v1::NONE) {
    weights.bytes = length * sizeof(float);
    return weights;
  }
  const auto carries_weights = [](const CodecTraits& traits) { return traits.valid_on_pull; };
  if (!v1::Codec_IsValid(entry.codec()) || !carries_weights(TraitsOf(entry.codec()))) {
    return Bad(field + ".codec", absl::StrCat(entry.codec(), "; allowed: ", CodecNames(carries_weights)));
  }
  weights.codec = entry.codec();
  weights.bytes = MaxEncodedBytes({weights.codec, 0}, length);
  if (entry.encoded_bytes() == weights.bytes) return weights;
  return Bad(field + ".encoded_bytes", absl::StrCat(entry.encoded_bytes(), "; ", length, " elements as ",
                                                    v1::Codec_Name(weights.codec), " take ", weights.bytes));
}

}  // namespace

absl::StatusOr<std::vector<ArrivedWeights>> FindWeights(const v1::JobDescription& job, const ChunkBatch& batch,
                                                        const DecodedReply& reply, const SharedRegion* region) {
  const v1::ExchangeReply& header = reply.header;
  const int chunks = static_cast<int>(batch.chunks.size());
  if (header.chunks_size() != chunks) {
    return Bad("chunks", absl::StrCat(header.chunks_size(), " entries; asked for ", chunks));
  }
  const bool shared = header.shared_size() > 0;
  if (shared && header.shared_size() != chunks) {
    return Bad("shared", absl::StrCat(header.shared_size(), " entries; chunks has ", chunks));
  }
  std::vector<ArrivedWeights> found;
  uint64_t at = 0;
  for (int i = 0; i < chunks; ++i) {
    RUBATO_ASSIGN_OR_RETURN(ArrivedWeights weights,
                            CheckEntry(header, i, batch.chunks[i], job.chunks(batch.chunks[i]).length()));
    if (shared) {
      const v1::SharedSpan& span = header.shared(i);
      if (region != nullptr && span.bytes() == weights.bytes)
        weights.shared = region->Find(span.offset(), span.bytes());
      if (weights.shared == nullptr) {
        return Bad(absl::StrCat("shared[", i, "]"),
                   absl::StrCat(span.bytes(), " bytes from ", span.offset(), "; the chunk takes ", weights.bytes,
                                " and the server's shared memory has ", region == nullptr ? 0 : region->size()));
      }
    } else {
      weights.offset = at;
      weights.payload = reply.payload;
      at += weights.bytes;
    }
    found.push_back(std::move(weights));
  }
  if (reply.payload.size() != at) {
    return Bad("payload", absl::StrCat(reply.payload.size(), " bytes; the chunks have ", at));
  }
  return found;
}

absl::Status DecodeWeights(const ArrivedWeights& weights, int64_t length, bool is_large_model, float* out) {
  if (weights.codec == v1::NONE) {
    if (weights.shared == nullptr) {
      weights.payload.CopyTo(weights.offset, weights.bytes, out);
    } else if (is_large_model) {
      StreamingCopy(out, weights.shared, weights.bytes);
      FinishStreamingCopies();
    } else {
      ColdCopy(out, weights.shared, weights.bytes);
    }
    return absl::OkStatus();
  }
  std::vector<uint8_t> joined;
  const void* data =
      weights.shared != nullptr ? weights.shared : weights.payload.Contiguous(weights.offset, weights.bytes);
  if (data == nullptr) {
    joined.resize(weights.bytes);
    weights.payload.CopyTo(weights.offset, weights.bytes, joined.data());
    data = joined.data();
  }
  const auto bytes = static_cast<int64_t>(weights.bytes);
  RUBATO_RETURN_IF_ERROR(CheckEncoded(weights.codec, static_cast<const uint8_t*>(data), bytes, length));
  Decode(weights.codec, static_cast<const uint8_t*>(data), bytes, length, out);
  return absl::OkStatus();
}

}  // namespace rubato::worker
