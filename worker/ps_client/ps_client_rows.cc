// What a PsClient does about rows of tables.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/ps_client/ps_client.h"

namespace rubato::worker {

void PsClient::AddTables() {
  MutexLock lock(mu_);
  const auto& batches = batching_.batches;
  tensor_batches_ = static_cast<int>(
      std::find_if(batches.begin(), batches.end(), [](const ChunkBatch& batch) { return batch.table >= 0; }) -
      batches.begin());
  tables_ = PartsOfTables(options_.tables, options_.seed, batching_);
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

std::shared_ptr<PsClient::Asked> PsClient::Ask(const TableParts& table, const std::vector<uint64_t>& keys) {
  auto asked = std::make_shared<Asked>();
  asked->parts = table.Split(keys);
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
  if (asked_[rows.table]->parts[rows.part].keys.empty()) {
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
  const std::vector<KeyPart> parts = table.Split(keys);
  MutexLock lock(mu_);
  epoch_ = pushed.epoch;
  slice_ = pushed.slice;
  for (size_t i = 0; i < table.batches.size(); ++i) {
    const KeyPart& part = parts[i];
    auto rows = std::make_shared<PushedRows>();
    rows->keys = part.keys;
    rows->gradients.reserve(part.keys.size() * table.dimension);
    for (const KeyPart::Run& run : part.runs) {
      const auto first = gradients.begin() + static_cast<int64_t>(run.begin) * table.dimension;
      rows->gradients.insert(rows->gradients.end(), first, first + static_cast<int64_t>(run.count) * table.dimension);
    }
    const int batch = table.batches[i];
    RowsOf(batch).pushed = std::move(rows);
    examples_[batch] = pushed.examples;
    machine_.Push(batch);
  }
}

void PsClient::AddRows(int batch, bool pushes, v1::TableKeys* keys, std::vector<grpc::Slice>* payload) {
  RowBatch& rows = RowsOf(batch);
  keys->set_table(rows.table);
  size_t bytes = 0;
  const auto add = [&](const auto& owner, const auto& array) {
    const size_t size = array.size() * sizeof(array.front());
    if (size > 0) payload->push_back(SliceOf(owner, array.data(), size));
    bytes += size;
  };
  if (pushes && examples_[batch] != 0) {
    keys->set_pushed(rows.pushed->keys.size());
    add(rows.pushed, rows.pushed->keys);
    add(rows.pushed, rows.pushed->gradients);
  }
  rows.in_flight = asked_[rows.table];
  const std::vector<uint64_t>& asked = rows.in_flight->parts[rows.part].keys;
  keys->set_asked(asked.size());
  add(rows.in_flight, asked);
  counters_.sent_bytes += static_cast<int64_t>(bytes);
}

absl::Status PsClient::TakeRows(int batch, const DecodedReply& reply) {
  const ChunkBatch& chunks = batching_.batches[batch];
  RowBatch& rows = RowsOf(batch);
  bool same = reply.header.chunks_size() == static_cast<int>(chunks.chunks.size());
  for (int i = 0; same && i < reply.header.chunks_size(); ++i)
    same = reply.header.chunks(i).chunk() == chunks.chunks[i];
  if (!same) return absl::InvalidArgumentError("chunks: others than those that were asked for");
  const KeyPart& part = rows.in_flight->parts[rows.part];
  const int64_t dimension = tables_[rows.table].dimension;
  const size_t row_bytes = sizeof(float) * static_cast<size_t>(dimension);
  if (reply.payload.size() != part.keys.size() * row_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("payload: ", reply.payload.size(), " bytes; ", part.keys.size(),
                                                   " rows of ", row_bytes, " bytes were asked for"));
  }
  counters_.received_bytes += static_cast<int64_t>(reply.payload.size());
  if (rows.in_flight != asked_[rows.table]) return absl::OkStatus();  // Nobody wants them any more.
  size_t at = 0;
  for (const KeyPart::Run& run : part.runs) {
    reply.payload.CopyTo(at, run.count * row_bytes, rows.in_flight->rows.get() + run.begin * dimension);
    at += run.count * row_bytes;
  }
  rows.is_there = true;
  return absl::OkStatus();
}

}  // namespace rubato::worker
