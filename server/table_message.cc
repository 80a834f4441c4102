#include "server/table_message.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/codec_traits.h"
#include "common/status.h"
#include "kernels/codec/codec.h"
#include "server/tables/hash_keys.h"

namespace rubato::server {
namespace {

static_assert(std::endian::native == std::endian::little, "keys and rows travel as they lie in memory");

absl::Status Bad(absl::string_view field, absl::string_view rest) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", rest));
}

// The shards that the chunks are, ascending.
absl::StatusOr<std::vector<uint32_t>> ShardsOf(const v1::TableKeys& keys, const std::vector<uint32_t>& chunks,
                                               const ModelSpec& model, const v1::JobDescription& job) {
  std::vector<uint32_t> shards;
  shards.reserve(chunks.size());
  for (size_t i = 0; i < chunks.size(); ++i) {
    const v1::ChunkPlacement& placement = job.chunks(static_cast<int>(chunks[i]));
    if (!IsShard(placement) || placement.tensor() - model.tensors.size() != keys.table()) {
      return Bad(absl::StrCat("chunks[", i, "]"),
                 absl::StrCat("chunk ", chunks[i], " is no shard of table ", keys.table()));
    }
    const auto shard = static_cast<uint32_t>(placement.offset());
    if (!shards.empty() && shard <= shards.back()) {
      return Bad(absl::StrCat("chunks[", i, "]"),
                 absl::StrCat("shard ", shard, " after shard ", shards.back(), "; allowed: ascending"));
    }
    shards.push_back(shard);
  }
  return shards;
}

// What a message has of a table, one array after another.
struct ArrayBytes {
  uint64_t pushed = 0, gradients = 0, asked = 0;
};

// What is pushed and what is asked for, in shared memory.
constexpr int kSpans = 2;

// Entry `i` of the message's spans, which is to have so many bytes.
absl::StatusOr<const uint8_t*> FindSpan(const v1::ExchangeRequest& header, int i, uint64_t bytes,
                                        const SharedRegion& region) {
  const v1::SharedSpan& span = header.shared(i);
  const std::string field = absl::StrCat("shared[", i, "]");
  if (span.bytes() != bytes) {
    return Bad(field + ".bytes",
               absl::StrCat(span.bytes(), "; what table ", i == 0 ? "pushes" : "asks for", " takes ", bytes));
  }
  if (span.offset() % sizeof(uint64_t) != 0) {
    return Bad(field + ".offset", absl::StrCat(span.offset(), "; allowed: multiples of 8"));
  }
  const uint8_t* data = region.Find(span.offset(), bytes);
  if (data != nullptr) return data;
  return Bad(field, absl::StrCat(bytes, " bytes from ", span.offset(), " are not inside the ", region.size(),
                                 " bytes of the worker's shared memory"));
}

// How long the arrays are; they are all of the payload, or all that shared memory has.
absl::StatusOr<ArrayBytes> CheckSizes(const v1::TableKeys& keys, uint64_t row_bytes, const DecodedRequest& message,
                                      const SharedRegion* region) {
  const int spans = message.header.shared_size();
  const uint64_t there = spans > 0 ? region->size() : message.payload.size();
  // So that nothing below overflows.
  const uint64_t most = there / sizeof(uint64_t);
  const bool fits = keys.pushed() <= most && keys.asked() <= most;
  ArrayBytes bytes;
  if (fits) {
    bytes = {.pushed = keys.pushed() * sizeof(uint64_t),
             .gradients = keys.pushed() * row_bytes,
             .asked = keys.asked() * sizeof(uint64_t)};
  }
  if (spans > 0) {
    if (message.payload.size() != 0) {
      return Bad("payload", absl::StrCat(message.payload.size(), " bytes, but shared is not empty"));
    }
    if (spans != kSpans) {
      return Bad("shared", absl::StrCat(spans, " entries; a message about a table has ", kSpans,
                                        ": what is pushed, and what is asked for"));
    }
    if (fits) return bytes;
  }
  if (fits && bytes.pushed + bytes.gradients + bytes.asked == message.payload.size()) return bytes;
  return Bad(spans > 0 ? "shared" : "payload",
             absl::StrCat(there, " bytes; table.pushed ", keys.pushed(), " and table.asked ", keys.asked(),
                          " keys with rows of ", row_bytes, " bytes take another size"));
}

// Replaces the keys, which may be elsewhere, by their hashes.
absl::StatusOr<absl::Span<const uint64_t>> Hash(absl::string_view field, const uint64_t* keys, size_t count,
                                                const KeyHash& hash, uint64_t* hashes) {
  HashKeys(hash, absl::MakeConstSpan(keys, count), hashes);
  for (size_t i = 1; i < count; ++i) {
    if (hashes[i] > hashes[i - 1]) [[likely]]
      continue;
    return Bad(absl::StrCat("table: ", field, " key ", i),
               absl::StrFormat("%d, whose hash is not over that of the key before it", hash.KeyOf(hashes[i])));
  }
  return absl::MakeConstSpan(hashes, count);
}

// Where in the hashes each of the shards begins, and where the last one ends.
absl::StatusOr<std::vector<size_t>> SplitByShard(absl::string_view field, absl::Span<const uint64_t> hashes,
                                                 const std::vector<uint32_t>& shards, const KeyHash& hash,
                                                 uint32_t all_shards) {
  std::vector<size_t> begins;
  begins.reserve(shards.size() + 1);
  auto at = hashes.begin();
  for (const uint32_t shard : shards) {
    begins.push_back(static_cast<size_t>(at - hashes.begin()));
    if (at != hashes.end() && ShardOfHash(*at, all_shards) < shard) break;
    at = std::partition_point(at, hashes.end(), [&](uint64_t here) { return ShardOfHash(here, all_shards) <= shard; });
  }
  if (at == hashes.end()) {
    begins.push_back(hashes.size());
    return begins;
  }
  return Bad(absl::StrCat("table: ", field, " key ", at - hashes.begin()),
             absl::StrFormat("%d is of shard %d, which the message does not name", hash.KeyOf(*at),
                             ShardOfHash(*at, all_shards)));
}

// The gradients, wherever they are; if nobody else has them as float32, in memory of the message. `shared`: where the
// region has them; null: the payload does.
const float* ReadGradients(const ArrayBytes& bytes, const DecodedRequest& request, const uint8_t* shared,
                           const TableSpec& spec, TableMessage* message) {
  const v1::Codec codec = spec.config.push();
  const bool is_encoded = TraitsOf(codec).lossy;
  if (shared != nullptr && !is_encoded) return reinterpret_cast<const float*>(shared);
  const int64_t count = static_cast<int64_t>(bytes.pushed / sizeof(uint64_t)) * spec.dimension();
  message->gradients = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(count));
  float* const gradients = message->gradients.get();
  if (!is_encoded) {
    request.payload.CopyTo(bytes.pushed, bytes.gradients, gradients);
    return gradients;
  }
  std::unique_ptr<uint8_t[]> copied;
  if (shared == nullptr) {
    copied = std::make_unique_for_overwrite<uint8_t[]>(bytes.gradients);
    request.payload.CopyTo(bytes.pushed, bytes.gradients, copied.get());
    shared = copied.get();
  }
  Decode(codec, shared, static_cast<int64_t>(bytes.gradients), count, gradients);
  return gradients;
}

// Reads the arrays: hashes in the place of keys, and where the gradients are.
absl::StatusOr<const float*> ReadArrays(const ArrayBytes& bytes, const DecodedRequest& request, const KeyHash& hash,
                                        const TableSpec& spec, TableMessage* message) {
  const size_t pushed = bytes.pushed / sizeof(uint64_t), asked = bytes.asked / sizeof(uint64_t);
  message->hashes = std::make_unique_for_overwrite<uint64_t[]>(pushed + asked);
  uint64_t* const pushed_hashes = message->hashes.get();
  uint64_t* const asked_hashes = pushed_hashes + pushed;
  const uint64_t* pushed_keys = pushed_hashes;
  const uint64_t* asked_keys = asked_hashes;
  const uint8_t* shared_gradients = nullptr;
  if (request.header.shared_size() > 0) {
    RUBATO_ASSIGN_OR_RETURN(const uint8_t* first,
                            FindSpan(request.header, 0, bytes.pushed + bytes.gradients, *message->region));
    RUBATO_ASSIGN_OR_RETURN(const uint8_t* second, FindSpan(request.header, 1, bytes.asked, *message->region));
    pushed_keys = reinterpret_cast<const uint64_t*>(first);
    asked_keys = reinterpret_cast<const uint64_t*>(second);
    shared_gradients = first + bytes.pushed;
  } else {
    request.payload.CopyTo(0, bytes.pushed, pushed_hashes);
    request.payload.CopyTo(bytes.pushed + bytes.gradients, bytes.asked, asked_hashes);
  }
  RUBATO_ASSIGN_OR_RETURN(message->asked, Hash("asked", asked_keys, asked, hash, asked_hashes));
  RUBATO_ASSIGN_OR_RETURN(message->pushed, Hash("pushed", pushed_keys, pushed, hash, pushed_hashes));
  message->bytes = bytes.pushed + bytes.gradients + bytes.asked;
  return ReadGradients(bytes, request, shared_gradients, spec, message);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TableMessage>> ReadTable(const v1::TableKeys& keys, bool with_gradients,
                                                              const std::vector<uint32_t>& chunks,
                                                              const DecodedRequest& message,
                                                              std::shared_ptr<const SharedRegion> region,
                                                              const TableRules& rules, const v1::JobDescription& job) {
  const size_t tables = rules.model == nullptr ? 0 : rules.model->tables.size();
  if (keys.table() >= tables) {
    return Bad("table.table", absl::StrCat(keys.table(), "; the job's model has ", tables, " tables"));
  }
  if (!with_gradients && keys.pushed() != 0) {
    return Bad("table.pushed", absl::StrCat(keys.pushed(), "; allowed: 0 unless the message pushes examples"));
  }
  const TableSpec& spec = rules.model->tables[keys.table()];
  const uint64_t row_bytes = sizeof(float) * static_cast<uint64_t>(spec.dimension());
  const auto sent_row_bytes = static_cast<uint64_t>(MaxEncodedBytes({spec.config.push()}, spec.dimension()));
  RUBATO_ASSIGN_OR_RETURN(const ArrayBytes bytes, CheckSizes(keys, sent_row_bytes, message, region.get()));
  RUBATO_ASSIGN_OR_RETURN(const std::vector<uint32_t> shards, ShardsOf(keys, chunks, *rules.model, job));
  auto table = std::make_shared<TableMessage>();
  table->table = static_cast<int>(keys.table());
  if (message.header.shared_size() > 0) table->region = std::move(region);
  const KeyHash hash = HashOfTable(rules.seed, table->table);
  const uint32_t all_shards = spec.config.shards();
  RUBATO_ASSIGN_OR_RETURN(const float* gradients, ReadArrays(bytes, message, hash, spec, table.get()));
  RUBATO_RETURN_IF_ERROR(SplitByShard("asked", table->asked, shards, hash, all_shards).status());
  RUBATO_ASSIGN_OR_RETURN(const std::vector<size_t> begins,
                          SplitByShard("pushed", table->pushed, shards, hash, all_shards));
  table->pieces.reserve(shards.size());
  table->by_chunk.resize(shards.size());
  for (size_t i = 0; i < shards.size(); ++i) {
    const size_t count = begins[i + 1] - begins[i];
    RowGradient& gradient = table->by_chunk[i];
    gradient.hashes = table->pushed.subspan(begins[i], count);
    gradient.rows = gradients + begins[i] * spec.dimension();
    table->pieces.emplace_back(reinterpret_cast<const uint8_t*>(gradient.rows), count * row_bytes);
    gradient.pieces = absl::MakeConstSpan(&table->pieces.back(), 1);
  }
  return table;
}

}  // namespace rubato::server
