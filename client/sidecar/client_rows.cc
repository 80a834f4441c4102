#include "client/sidecar/client_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/status.h"
#include "common/table_keys.h"

namespace rubato::client {

ClientRows::ClientRows(const ModelSpec* spec, uint64_t seed, worker::Parameters* parameters, Pull pull)
    : parameters_(parameters), pull_(std::move(pull)) {
  for (size_t table = 0; table < spec->tables.size(); ++table) {
    tables_.push_back({.hash = HashOfTable(seed, static_cast<int>(table)),
                       .dimension = static_cast<size_t>(spec->tables[table].dimension()),
                       .asked = {}});
  }
}

ClientRows::Sorted ClientRows::Sort(const KeyHash& hash, const std::vector<uint64_t>& keys) {
  std::vector<std::pair<uint64_t, uint32_t>> hashes;
  hashes.reserve(keys.size());
  for (uint64_t key : keys) hashes.emplace_back(hash.Of(key), static_cast<uint32_t>(hashes.size()));
  std::sort(hashes.begin(), hashes.end());
  Sorted sorted;
  sorted.keys.reserve(keys.size());
  sorted.places.reserve(keys.size());
  for (const auto& [unused, place] : hashes) {
    sorted.keys.push_back(keys[place]);
    sorted.places.push_back(place);
  }
  return sorted;
}

void ClientRows::AppendRows(const Sorted& keys, size_t dimension, const float* rows, std::string* to) {
  const size_t begin = to->size(), row_bytes = dimension * sizeof(float);
  to->resize(begin + keys.keys.size() * row_bytes);
  for (size_t i = 0; i < keys.keys.size(); ++i) {
    std::memcpy(to->data() + begin + keys.places[i] * row_bytes, rows + i * dimension, row_bytes);
  }
}

void ClientRows::Ask(int table, const std::vector<uint64_t>& keys) {
  tables_[table].asked = Sort(tables_[table].hash, keys);
  parameters_->AskRows(table, tables_[table].asked.keys);
}

absl::StatusOr<bool> ClientRows::Await() {
  for (size_t table = 0; table < tables_.size(); ++table) {
    RUBATO_ASSIGN_OR_RETURN(const bool there, parameters_->AwaitRows(static_cast<int>(table)));
    if (!there) return false;
  }
  return true;
}

std::string ClientRows::Take() {
  std::string answer;
  for (size_t number = 0; number < tables_.size(); ++number) {
    const Table& table = tables_[number];
    const uint64_t count = table.asked.keys.size();
    answer.append(reinterpret_cast<const char*>(&count), sizeof(count));
    if (count == 0) continue;
    AppendRows(table.asked, table.dimension, parameters_->rows(static_cast<int>(number)), &answer);
    tables_[number].asked = {};
  }
  return answer;
}

void ClientRows::Push(int table, const std::vector<uint64_t>& keys, const std::vector<float>& gradients,
                      const worker::Parameters::Pushed& pushed) {
  const Sorted sorted = Sort(tables_[table].hash, keys);
  const size_t dimension = tables_[table].dimension;
  std::vector<float> in_order(gradients.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    std::copy_n(gradients.data() + sorted.places[i] * dimension, dimension, in_order.data() + i * dimension);
  }
  parameters_->PushRows(table, sorted.keys, in_order, pushed);
}

absl::StatusOr<std::string> ClientRows::Read(int table, const std::vector<uint64_t>& keys) const {
  const Sorted sorted = Sort(tables_[table].hash, keys);
  const size_t dimension = tables_[table].dimension;
  std::vector<float> rows(keys.size() * dimension);
  RUBATO_RETURN_IF_ERROR(pull_(table, sorted.keys, rows.data()));
  std::string answer;
  AppendRows(sorted, dimension, rows.data(), &answer);
  return answer;
}

}  // namespace rubato::client
