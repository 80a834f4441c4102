// What a PsClient does about rows of tables.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "worker/ps_client/arrived_rows.h"
#include "worker/ps_client/ps_client.h"
#include "worker/ps_client/table_payload.h"

namespace rubato::worker {

void PsClient::AddTables() {
  MutexLock lock(mu_);
  const auto& batches = batching_.batches;
  tensor_batches_ = static_cast<int>(
      std::find_if(batches.begin(), batches.end(), [](const ChunkBatch& batch) { return batch.table >= 0; }) -
      batches.begin());
  tables_ = PartsOfTables(options_.tables, options_.seed, batching_);
  if (options_.arena != nullptr && !tables_.empty()) blocks_ = SharedBlocks::Create(options_.arena, kRowRoomBytes);
  row_batches_.resize(batches.size() - tensor_batches_);
  for (size_t table = 0; table < tables_.size(); ++table) {
    for (size_t part = 0; part < tables_[table].batches.size(); ++part) {
      RowBatch& rows = RowsOf(tables_[table].batches[part]);
      rows.table = static_cast<int>(table);
      rows.part = part;
    }
    asked_.push_back(Ask(tables_[table], {}));
  }
}

PsClient::SentKeys PsClient::MakeSent(const TableParts& table, const KeyPart& part, const uint64_t* keys,
                                      const float* gradients) const {
  if (part.count == 0) return {};
  const size_t bytes = PayloadBytes(table, part, gradients != nullptr);
  const auto data = ArrayIn<uint64_t>(blocks_.get(), (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t));
  WritePayload(table, part, keys, gradients, data.get());
  return {.count = part.count, .bytes = bytes, .data = data};
}

std::shared_ptr<PsClient::Asked> PsClient::Ask(const TableParts& table, const std::vector<uint64_t>& keys) const {
  auto asked = std::make_shared<Asked>();
  asked->parts = table.Split(keys);
  for (const KeyPart& part : asked->parts) asked->keys.push_back(MakeSent(table, part, keys.data(), nullptr));
  asked->rows = std::make_unique_for_overwrite<float[]>(keys.size() * table.dimension);
  return asked;
}

void PsClient::AskRows(int number, const std::vector<uint64_t>& keys) {
  std::shared_ptr<Asked> asked = Ask(tables_[number], keys);
  MutexLock lock(mu_);
  asked_[number] = std::move(asked);
  for (int batch : tables_[number].batches) {
    RowsOf(batch).is_there = false;
    AskAgainIfNeeded(batch);
  }
}

void PsClient::AskAgainIfNeeded(int batch) {
  RowBatch& rows = RowsOf(batch);
  if (rows.is_there || !machine_.Have(batch)) return;
  // Nothing is wanted of this one.
  if (asked_[rows.table]->parts[rows.part].count == 0) {
    rows.is_there = true;
  } else {
    machine_.PullAgain(batch);
  }
}

void PsClient::ForgetRows() {
  for (size_t table = 0; table < tables_.size(); ++table) asked_[table] = Ask(tables_[table], {});
  for (RowBatch& rows : row_batches_) rows.is_there = false;
}

const std::string& PsClient::FirstOf(int batch) const {
  if (HasRows(batch)) return options_.tables[batching_.batches[batch].table].config.name();
  return options_.tensors[batching_.tensors_of_batch[batch].front()];
}

absl::StatusOr<bool> PsClient::AwaitRows(int number) {
  MutexLock lock(mu_);
  const auto there = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const std::vector<int>& batches = tables_[number].batches;
    return std::all_of(batches.begin(), batches.end(), [&](int batch) ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return machine_.Have(batch) && RowsOf(batch).is_there;
    });
  };
  RUBATO_RETURN_IF_ERROR(AwaitLocked([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return machine_.moved() || there(); }));
  return !machine_.moved();
}

const float* PsClient::rows(int number) {
  MutexLock lock(mu_);
  return asked_[number]->rows.get();
}

void PsClient::PushRows(int number, const std::vector<uint64_t>& keys, const std::vector<float>& gradients,
                        const Pushed& pushed) {
  const TableParts& table = tables_[number];
  std::vector<SentKeys> sent;
  for (const KeyPart& part : table.Split(keys)) {
    sent.push_back(MakeSent(table, part, keys.data(), gradients.data()));
  }
  MutexLock lock(mu_);
  epoch_ = pushed.epoch;
  slice_ = pushed.slice;
  for (size_t i = 0; i < table.batches.size(); ++i) {
    const int batch = table.batches[i];
    RowsOf(batch).pushed = std::move(sent[i]);
    examples_[batch] = pushed.examples;
  }
  QueuePushes(table.batches);
  QueuePushes(std::exchange(waits_for_rows_, {}));
  if (--missing_pushes_.tables == 0) SendQueued();
}

bool PsClient::AddSpan(const SentKeys& sent, v1::ExchangeRequest* header) const {
  v1::SharedSpan* span = header->add_shared();
  if (sent.bytes == 0) return true;
  const std::optional<uint64_t> offset = options_.arena->region().OffsetOf(sent.data.get(), sent.bytes);
  if (!offset.has_value()) return false;
  span->set_offset(*offset);
  span->set_bytes(sent.bytes);
  return true;
}

void PsClient::AddRows(int batch, const SharedMemoryLink* memory, v1::ExchangeRequest* header,
                       std::vector<grpc::Slice>* payload) {
  RowBatch& rows = RowsOf(batch);
  rows.in_flight = asked_[rows.table];
  const bool pushes = header->has_push_pull() && examples_[batch] != 0;
  const SentKeys pushed = pushes ? rows.pushed : SentKeys();
  const SentKeys& asked = rows.in_flight->keys[rows.part];
  v1::TableKeys* const keys =
      header->has_push_pull() ? header->mutable_push_pull()->mutable_table() : header->mutable_pull()->mutable_table();
  keys->set_table(rows.table);
  keys->set_pushed(pushed.count);
  keys->set_asked(asked.count);
  counters_.sent_bytes += static_cast<int64_t>(pushed.bytes + asked.bytes);
  if (memory != nullptr && AddSpan(pushed, header) && AddSpan(asked, header)) return;
  header->clear_shared();
  for (const SentKeys* sent : {&pushed, &asked}) {
    if (sent->bytes > 0) payload->push_back(SliceOf(sent->data, sent->data.get(), sent->bytes));
  }
}

absl::Status PsClient::TakeRows(int batch, const DecodedReply& reply, const SharedRegion* memory) {
  RowBatch& rows = RowsOf(batch);
  const KeyPart& part = rows.in_flight->parts[rows.part];
  const TableParts& table = tables_[rows.table];
  const size_t row_bytes = AnsweredRowBytes(table);
  RUBATO_ASSIGN_OR_RETURN(const ArrivedRows arrived,
                          FindRows(batching_.batches[batch], reply, part.count, row_bytes, memory));
  counters_.received_bytes += static_cast<int64_t>(part.count * row_bytes);
  if (rows.in_flight != asked_[rows.table]) return absl::OkStatus();  // Nobody wants them any more.
  size_t at = 0;
  for (const KeyPart::Run& run : part.runs) {
    arrived.Decode(table, at, run.count,
                   rows.in_flight->rows.get() + static_cast<int64_t>(run.begin) * table.dimension);
    at += run.count;
  }
  rows.is_there = true;
  return absl::OkStatus();
}

}  // namespace rubato::worker
