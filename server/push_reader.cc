#include "server/push_reader.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/byte_span.h"
#include "common/codec_traits.h"
#include "common/status.h"
#include "kernels/codec/codec.h"
#include "kernels/optimizer/encoded_gradient.h"

namespace rubato::server {
namespace {

absl::Status Bad(absl::string_view field, absl::string_view rest) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", rest));
}

// Names are made for errors alone.
std::string Field(int i, absl::string_view member = "") { return absl::StrCat("push_pull.chunks[", i, "]", member); }

// Where an assignment's weights are is read as a push of these chunks: InvalidArgument names a chunk that is none.
absl::StatusOr<v1::PushPull> PushOf(const v1::Assign& assign, const v1::JobDescription& job) {
  v1::PushPull push;
  push.set_examples(1);
  for (int i = 0; i < assign.chunks_size(); ++i) {
    const uint32_t chunk = assign.chunks(i);
    if (chunk >= static_cast<uint32_t>(job.chunks_size())) {
      return Bad(absl::StrCat("assign.chunks[", i, "]"),
                 absl::StrCat("unknown chunk ", chunk, "; the job has ", job.chunks_size()));
    }
    v1::ChunkUpdate* update = push.add_chunks();
    update->set_chunk(chunk);
    update->set_length(job.chunks(static_cast<int>(chunk)).length());
  }
  return push;
}

v1::Codec CodecOf(const v1::ChunkUpdate& update) {
  return update.codec() == v1::CODEC_UNSPECIFIED ? v1::NONE : update.codec();
}

// The bytes that the gradient of a chunk of `length` elements takes.
absl::StatusOr<uint64_t> CheckEncodedBytes(const v1::ChunkUpdate& update, int64_t length, int i) {
  if (!v1::Codec_IsValid(update.codec())) {
    return Bad(Field(i, ".codec"),
               absl::StrCat(update.codec(), " is not known here; allowed: 0 to ", static_cast<int>(v1::Codec_MAX)));
  }
  const v1::Codec codec = CodecOf(update);
  if (codec == v1::NONE) {
    const uint64_t bytes = length * sizeof(float);
    if (update.encoded_bytes() == 0 || update.encoded_bytes() == bytes) return bytes;
    return Bad(Field(i, ".encoded_bytes"), absl::StrCat(update.encoded_bytes(), "; ", length, " float32 take ", bytes));
  }
  const uint64_t most = MaxEncodedBytes({codec, 1.0}, length);
  const bool fixed = !TraitsOf(codec).takes_fraction();
  if (update.encoded_bytes() == 0 || update.encoded_bytes() > most || (fixed && update.encoded_bytes() != most)) {
    return Bad(Field(i, ".encoded_bytes"),
               absl::StrCat(update.encoded_bytes(), "; ", length, " elements as ", v1::Codec_Name(codec), " take ",
                            fixed ? "" : "at most ", most));
  }
  return update.encoded_bytes();
}

// The gradients of one push, and what keeps their bytes where they are. Contributions point into it.
struct PushedGradients {
  PayloadView payload;
  std::shared_ptr<const SharedRegion> region;
  // Of all gradients, one after another, and the gradients by chunk of the request. Never grow beyond their capacity.
  std::vector<ByteSpan> pieces;
  std::vector<EncodedGradient> gradients;
  std::vector<std::vector<uint8_t>> copies;
};

// What a push is about tables.
absl::StatusOr<std::shared_ptr<const TableMessage>> ReadTablePush(const DecodedRequest& message,
                                                                  std::shared_ptr<const SharedRegion> region,
                                                                  const TableRules& tables,
                                                                  const v1::JobDescription& job) {
  const v1::PushPull& push = message.header.push_pull();
  std::vector<uint32_t> chunks;
  for (int i = 0; i < push.chunks_size(); ++i) {
    if (push.chunks(i).chunk() >= static_cast<uint32_t>(job.chunks_size())) {
      return Bad(Field(i), absl::StrCat("unknown chunk ", push.chunks(i).chunk(), "; the job has ", job.chunks_size()));
    }
    chunks.push_back(push.chunks(i).chunk());
  }
  absl::StatusOr<std::shared_ptr<const TableMessage>> table =
      ReadTable(push.table(), push.examples() > 0, chunks, message, std::move(region), tables, job);
  return table.ok() ? table : Annotate(table.status(), "push_pull");
}

// One walk over the chunks of a push.
class PushReader {
 public:
  // `push` is the message's, or what stands for it. `table`: its gradients; null if it is about tensors.
  PushReader(const DecodedRequest& message, const v1::PushPull& push, std::shared_ptr<const SharedRegion> region,
             const v1::JobDescription& job, uint32_t server, std::shared_ptr<const TableMessage> table = nullptr);

  // `hyperparameters` of all chunks; null: none.
  absl::StatusOr<uint64_t> Read(const std::shared_ptr<const PushHyperparameters>& hyperparameters,
                                PartitionRequest* request);

 private:
  // What concerns no single chunk.
  absl::Status CheckPush() const;
  absl::Status ReadChunk(int i, const std::shared_ptr<const PushHeader>& header, PartitionRequest* request);
  // Of a chunk of which the worker has no gradient.
  absl::Status CheckAbsent(int i) const;
  // Finds the gradient of `bytes` bytes and adds it to gradients_.
  absl::Status FindGradient(int i, v1::Codec codec, int64_t length, uint64_t bytes);
  absl::Status AppendShared(int i, uint64_t bytes);

  const v1::ExchangeRequest& header_;
  const v1::PushPull& push_;
  const std::shared_ptr<const TableMessage> table_;
  // Without what is a table's.
  const PayloadView payload_;
  const v1::JobDescription& job_;
  const uint32_t server_;
  // Gradients of tensors.
  const bool in_shared_memory_;
  // Null: the push is empty.
  std::shared_ptr<PushedGradients> gradients_;
  // Of the gradients so far.
  uint64_t bytes_ = 0;
};

PushReader::PushReader(const DecodedRequest& message, const v1::PushPull& push,
                       std::shared_ptr<const SharedRegion> region, const v1::JobDescription& job, uint32_t server,
                       std::shared_ptr<const TableMessage> table)
    : header_(message.header),
      push_(push),
      table_(std::move(table)),
      payload_(table_ == nullptr ? message.payload : PayloadView()),
      job_(job),
      server_(server),
      in_shared_memory_(table_ == nullptr && header_.shared_size() > 0) {
  if (push_.examples() == 0 || table_ != nullptr) return;
  gradients_ = std::make_shared<PushedGradients>();
  gradients_->payload = payload_;
  if (in_shared_memory_) gradients_->region = std::move(region);
  // A gradient is one piece, and one more for each border between two pieces of the payload that is within it.
  gradients_->pieces.reserve(push_.chunks_size() + payload_.pieces().size());
  gradients_->gradients.reserve(push_.chunks_size());
}

absl::Status PushReader::CheckPush() const {
  if (!std::isfinite(push_.epoch()) || push_.epoch() < 0) {
    return Bad("push_pull.epoch", absl::StrCat(push_.epoch(), "; allowed: 0 or more"));
  }
  if (const v1::ShardSlice& slice = push_.slice(); push_.has_slice()) {
    if (slice.shard() == 0) return Bad("push_pull.slice.shard", "0; shards are numbered from 1");
    if (slice.begin() < 0 || slice.end() < slice.begin()) {
      return Bad("push_pull.slice", absl::StrCat("begins with example ", slice.begin(), " and ends before ",
                                                 slice.end(), "; allowed: 0 <= begin <= end"));
    }
  }
  if (!in_shared_memory_) return absl::OkStatus();
  if (payload_.size() != 0) return Bad("payload", absl::StrCat(payload_.size(), " bytes, but shared is not empty"));
  const int gradients = gradients_ == nullptr ? 0 : push_.chunks_size();
  if (header_.shared_size() == gradients) return absl::OkStatus();
  return Bad("shared", absl::StrCat(header_.shared_size(), " entries; push_pull.chunks has ", gradients));
}

absl::StatusOr<uint64_t> PushReader::Read(const std::shared_ptr<const PushHyperparameters>& hyperparameters,
                                          PartitionRequest* request) {
  RUBATO_RETURN_IF_ERROR(CheckPush());
  request->chunks.reserve(push_.chunks_size());
  request->contributions.reserve(push_.chunks_size());
  auto header = std::make_shared<PushHeader>();
  header->task = header_.task();
  header->generation = header_.generation();
  header->step = push_.step();
  header->epoch = push_.epoch();
  if (push_.has_slice()) header->slice = push_.slice();
  header->hyperparameters = hyperparameters;
  for (int i = 0; i < push_.chunks_size(); ++i) RUBATO_RETURN_IF_ERROR(ReadChunk(i, header, request));
  if (in_shared_memory_ || payload_.size() == bytes_) return bytes_;
  return Bad("payload", absl::StrCat(payload_.size(), " bytes; push_pull.chunks declare ", bytes_));
}

absl::Status PushReader::ReadChunk(int i, const std::shared_ptr<const PushHeader>& header, PartitionRequest* request) {
  const v1::ChunkUpdate& update = push_.chunks(i);
  if (absl::Status status = CheckChunk(job_, server_, header_.partition(), update.chunk()); !status.ok()) {
    return Annotate(status, Field(i));
  }
  const v1::ChunkPlacement& placement = job_.chunks(static_cast<int>(update.chunk()));
  if (IsShard(placement) != (table_ != nullptr)) {
    return Bad(Field(i, ".chunk"),
               absl::StrCat(update.chunk(), IsShard(placement) ? " is a shard of a table, and push_pull.table is absent"
                                                               : " is of a tensor, and push_pull.table is present"));
  }
  const int64_t length = placement.length();
  if (update.length() != length) {
    return Bad(Field(i, ".length"),
               absl::StrCat(update.length(), "; chunk ", update.chunk(), " has ", length, " elements"));
  }
  if (update.base_version() < 0) return Bad(Field(i, ".base_version"), "negative");
  const bool absent = update.absent();
  uint64_t bytes = 0;
  if (absent) {
    RUBATO_RETURN_IF_ERROR(CheckAbsent(i));
  } else {
    RUBATO_ASSIGN_OR_RETURN(bytes, CheckEncodedBytes(update, length, i));
  }
  request->chunks.push_back(update.chunk());
  Contribution& contribution = request->contributions.emplace_back();
  contribution.header = header;
  contribution.examples = absent ? 0 : push_.examples();
  contribution.base_version = update.base_version();
  if (absent) return absl::OkStatus();
  if (table_ != nullptr && push_.examples() > 0) contribution.gradient = {table_, &table_->by_chunk[i]};
  if (gradients_ == nullptr) return absl::OkStatus();
  RUBATO_RETURN_IF_ERROR(FindGradient(i, CodecOf(update), length, bytes));
  contribution.gradient = {gradients_, &gradients_->gradients.back()};
  return absl::OkStatus();
}

absl::Status PushReader::CheckAbsent(int i) const {
  const uint64_t encoded = push_.chunks(i).encoded_bytes();
  if (encoded != 0) return Bad(Field(i, ".encoded_bytes"), absl::StrCat(encoded, "; allowed: 0 if it is absent"));
  if (!in_shared_memory_ || header_.shared(i).bytes() == 0) return absl::OkStatus();
  return Bad(absl::StrCat("shared[", i, "].bytes"),
             absl::StrCat(header_.shared(i).bytes(), "; push_pull.chunks[", i, "] is absent"));
}

absl::Status PushReader::AppendShared(int i, uint64_t bytes) {
  const v1::SharedSpan& span = header_.shared(i);
  if (span.bytes() != bytes) {
    return Bad(absl::StrCat("shared[", i, "].bytes"),
               absl::StrCat(span.bytes(), "; push_pull.chunks[", i, "] declares ", bytes));
  }
  const uint8_t* data = gradients_->region->Find(span.offset(), span.bytes());
  if (data == nullptr) {
    return Bad(absl::StrCat("shared[", i, "]"),
               absl::StrCat(span.bytes(), " bytes from ", span.offset(), " are not inside the ",
                            gradients_->region->size(), " bytes of the worker's shared memory"));
  }
  gradients_->pieces.emplace_back(data, bytes);
  return absl::OkStatus();
}

absl::Status PushReader::FindGradient(int i, v1::Codec codec, int64_t length, uint64_t bytes) {
  std::vector<ByteSpan>& pieces = gradients_->pieces;
  const size_t first = pieces.size();
  bool is_there = true;
  if (in_shared_memory_) {
    RUBATO_RETURN_IF_ERROR(AppendShared(i, bytes));
  } else {
    // A payload that ends too early is refused after the walk, which knows how long it should be.
    is_there = payload_.AppendPieces(bytes_, bytes, &pieces);
  }
  bytes_ += bytes;
  if (is_there && codec != v1::NONE) {
    // Indices are checked first and used afterwards: they must be the same ones.
    const bool may_change = in_shared_memory_ && TraitsOf(codec).has_indices;
    if (may_change || pieces.size() - first > 1) {
      std::vector<uint8_t>& copy = gradients_->copies.emplace_back();
      copy.reserve(bytes);
      for (size_t k = first; k < pieces.size(); ++k) copy.insert(copy.end(), pieces[k].begin(), pieces[k].end());
      pieces.resize(first);
      pieces.push_back(copy);
    }
    absl::Status status = CheckEncoded(codec, pieces.back().data(), static_cast<int64_t>(bytes), length);
    if (!status.ok()) return Annotate(status, Field(i));
  }
  gradients_->gradients.push_back(
      {.pieces = absl::MakeConstSpan(pieces.data() + first, pieces.size() - first), .codec = codec});
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckChunk(const v1::JobDescription& job, uint32_t server, uint32_t partition, uint32_t chunk) {
  if (chunk >= static_cast<uint32_t>(job.chunks_size())) {
    return absl::InvalidArgumentError(absl::StrCat("unknown chunk ", chunk, "; the job has ", job.chunks_size()));
  }
  const v1::ChunkPlacement& placement = job.chunks(static_cast<int>(chunk));
  if (placement.server() == server && placement.partition() == partition) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("chunk ", chunk, " is in partition ", placement.partition(),
                                                 " of server ", placement.server(), ", not in partition ", partition,
                                                 " of server ", server));
}

absl::StatusOr<uint64_t> ReadPush(const DecodedRequest& message, std::shared_ptr<const SharedRegion> region,
                                  const v1::JobDescription& job, uint32_t server,
                                  const PushHyperparameters::Rules& rules, const TableRules& tables,
                                  PartitionRequest* request, std::shared_ptr<const TableMessage>* table) {
  const v1::PushPull& push = message.header.push_pull();
  if (push.has_table()) {
    RUBATO_ASSIGN_OR_RETURN(*table, ReadTablePush(message, region, tables, job));
  }
  std::shared_ptr<const PushHyperparameters> hyperparameters;
  if (!push.groups().empty()) {
    RUBATO_ASSIGN_OR_RETURN(hyperparameters, PushHyperparameters::Read(push.groups(), rules));
  }
  absl::StatusOr<uint64_t> bytes =
      PushReader(message, push, std::move(region), job, server, *table).Read(hyperparameters, request);
  return bytes.ok() && *table != nullptr ? (*table)->bytes : bytes;
}

absl::StatusOr<uint64_t> ReadAssign(const DecodedRequest& message, std::shared_ptr<const SharedRegion> region,
                                    const v1::JobDescription& job, uint32_t server, PartitionRequest* request) {
  RUBATO_ASSIGN_OR_RETURN(const v1::PushPull push, PushOf(message.header.assign(), job));
  absl::StatusOr<uint64_t> bytes = PushReader(message, push, std::move(region), job, server).Read(nullptr, request);
  return bytes.ok() ? bytes : Annotate(bytes.status(), "assign");
}

}  // namespace rubato::server
