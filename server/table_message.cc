#include "server/table_message.h"

#include <bit>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status.h"

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

// Where in the list of keys each of the shards begins, and where the last one ends.
absl::StatusOr<std::vector<size_t>> SplitByShard(absl::string_view field, const std::vector<uint64_t>& keys,
                                                 const std::vector<uint32_t>& shards, const KeyHash& hash,
                                                 uint32_t all_shards) {
  std::vector<size_t> begins;
  uint64_t last = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    const uint64_t here = hash.Of(keys[i]);
    if (i > 0 && here <= last) {
      return Bad(absl::StrCat("payload: ", field, " key ", i),
                 absl::StrFormat("%d, whose hash is not over that of the key before it", keys[i]));
    }
    last = here;
    const uint32_t shard = ShardOfHash(here, all_shards);
    while (begins.size() < shards.size() && shards[begins.size()] <= shard) begins.push_back(i);
    if (begins.empty() || shards[begins.size() - 1] != shard) {
      return Bad(absl::StrCat("payload: ", field, " key ", i),
                 absl::StrFormat("%d is of shard %d, which the message does not name", keys[i], shard));
    }
  }
  begins.resize(shards.size() + 1, keys.size());
  return begins;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TableMessage>> ReadTable(const v1::TableKeys& keys, bool with_gradients,
                                                              const std::vector<uint32_t>& chunks,
                                                              const PayloadView& payload, const TableRules& rules,
                                                              const v1::JobDescription& job) {
  const size_t tables = rules.model == nullptr ? 0 : rules.model->tables.size();
  if (keys.table() >= tables) {
    return Bad("table.table", absl::StrCat(keys.table(), "; the job's model has ", tables, " tables"));
  }
  if (!with_gradients && keys.pushed() != 0) {
    return Bad("table.pushed", absl::StrCat(keys.pushed(), "; allowed: 0 unless the message pushes examples"));
  }
  const TableSpec& spec = rules.model->tables[keys.table()];
  const uint64_t most = payload.size() / sizeof(uint64_t);
  const uint64_t row_bytes = sizeof(float) * static_cast<uint64_t>(spec.dimension());
  // So that nothing below overflows.
  const bool fits = keys.pushed() <= most && keys.asked() <= most;
  const uint64_t bytes = fits ? keys.pushed() * (sizeof(uint64_t) + row_bytes) + keys.asked() * sizeof(uint64_t) : 0;
  if (!fits || bytes != payload.size()) {
    return Bad("payload", absl::StrCat(payload.size(), " bytes; table.pushed ", keys.pushed(), " and table.asked ",
                                       keys.asked(), " keys with rows of ", row_bytes, " bytes take another size"));
  }
  RUBATO_ASSIGN_OR_RETURN(const std::vector<uint32_t> shards, ShardsOf(keys, chunks, *rules.model, job));
  auto message = std::make_shared<TableMessage>();
  message->table = static_cast<int>(keys.table());
  message->pushed.resize(keys.pushed());
  message->asked.resize(keys.asked());
  message->gradients.resize(keys.pushed() * spec.dimension());
  size_t offset = 0;
  const auto take = [&](auto* array) {
    const size_t size = array->size() * sizeof(array->front());
    payload.CopyTo(offset, size, array->data());
    offset += size;
  };
  take(&message->pushed);
  take(&message->gradients);
  take(&message->asked);
  const KeyHash hash = HashOfTable(rules.seed, message->table);
  const uint32_t all_shards = spec.config.shards();
  RUBATO_RETURN_IF_ERROR(SplitByShard("asked", message->asked, shards, hash, all_shards).status());
  RUBATO_ASSIGN_OR_RETURN(const std::vector<size_t> begins,
                          SplitByShard("pushed", message->pushed, shards, hash, all_shards));
  message->pieces.reserve(shards.size());
  message->by_chunk.resize(shards.size());
  for (size_t i = 0; i < shards.size(); ++i) {
    const size_t count = begins[i + 1] - begins[i];
    RowGradient& gradient = message->by_chunk[i];
    gradient.keys = absl::MakeConstSpan(message->pushed).subspan(begins[i], count);
    gradient.rows = message->gradients.data() + begins[i] * spec.dimension();
    message->pieces.emplace_back(reinterpret_cast<const uint8_t*>(gradient.rows), count * row_bytes);
    gradient.pieces = absl::MakeConstSpan(&message->pieces.back(), 1);
  }
  return message;
}

}  // namespace rubato::server
