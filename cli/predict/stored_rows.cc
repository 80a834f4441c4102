#include "cli/predict/stored_rows.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/storage/checkpoint.h"
#include "common/table_keys.h"
#include "worker/data/table_keys_of_batch.h"

namespace rubato {
namespace {

absl::StatusOr<std::unique_ptr<const server::Table>> MakeTable(const NamedTable& stored, const TableSpec& spec,
                                                               uint64_t seed, int number) {
  if (stored.dimension != spec.dimension()) {
    return absl::FailedPreconditionError(absl::StrCat("table ", stored.name, " has rows of ", stored.dimension,
                                                      "; expected: ", spec.dimension(), ", as the run's config says"));
  }
  // Without the optimizer's state, whatever the algorithm: nothing is updated.
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<server::Table> table,
                          server::Table::Create({.name = stored.name,
                                                 .dimension = static_cast<int>(spec.dimension()),
                                                 .formula = server::RowFormula::kSgd,
                                                 .initial_bound = static_cast<float>(spec.config.initial_bound()),
                                                 .seed = SeedOfTable(seed, number),
                                                 .secret = SecretOfTable(seed, number),
                                                 .memory_bytes = server::Table::kMostMemory}));
  RUBATO_RETURN_IF_ERROR(table->Restore({}, stored.keys, stored.rows.data()));
  return table;
}

}  // namespace

absl::StatusOr<StoredRows> StoredRows::Read(const std::string& directory, const ModelSpec& spec, uint64_t seed) {
  StoredRows rows(spec);
  if (spec.tables.empty()) return rows;
  rows.hashes_ = worker::HashesOfTables(spec, seed);
  RUBATO_ASSIGN_OR_RETURN(const std::vector<NamedTable> stored, ReadCheckpointTables(directory));
  for (size_t number = 0; number < spec.tables.size(); ++number) {
    const std::string& name = spec.tables[number].config.name();
    const auto found =
        std::find_if(stored.begin(), stored.end(), [&](const NamedTable& table) { return table.name == name; });
    if (found == stored.end()) {
      return absl::FailedPreconditionError(absl::StrCat(directory, ": has no table ", name));
    }
    auto table = MakeTable(*found, spec.tables[number], seed, static_cast<int>(number));
    if (!table.ok()) return Annotate(table.status(), directory);
    rows.tables_.push_back(*std::move(table));
  }
  return rows;
}

absl::Status StoredRows::AddTo(const worker::Batch& batch, std::vector<float>* inputs) const {
  worker::PutFeatures(spec_, batch.inputs.data(), batch.examples, inputs);
  const std::vector<worker::TableKeysOfBatch> keys = worker::KeysOfBatch(spec_, hashes_, batch);
  std::vector<float> rows;
  for (size_t table = 0; table < keys.size(); ++table) {
    rows.resize(keys[table].keys.size() * spec_.tables[table].dimension());
    RUBATO_RETURN_IF_ERROR(tables_[table]->Lookup(keys[table].keys, rows.data()));
    worker::PutRows(spec_.tables[table], keys[table], rows.data(), batch.examples, NumElements(spec_.input),
                    inputs->data());
  }
  return absl::OkStatus();
}

}  // namespace rubato
