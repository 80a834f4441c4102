#include "cli/replay/weight_comparison.h"

#include <cstddef>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/storage/checkpoint.h"

namespace rubato {
namespace {

absl::Status OtherModel(const std::string& recorded, const std::string& what) {
  return absl::DataLossError(absl::StrCat(recorded, ": ", what));
}

void AddDifference(int64_t weights, const std::string& what, WeightComparison* comparison) {
  if (comparison->different == 0) comparison->first_difference = what;
  comparison->different += weights;
}

// `name` is of the array that both are.
void CompareArrays(const std::string& name, const float* was, const float* is, size_t count,
                   WeightComparison* comparison) {
  comparison->elements += static_cast<int64_t>(count);
  if (std::memcmp(was, is, sizeof(float) * count) == 0) return;
  for (size_t i = 0; i < count; ++i) {
    if (std::memcmp(&was[i], &is[i], sizeof(float)) == 0) continue;
    AddDifference(1, absl::StrCat(name, "[", i, "] is ", is[i], ", and was ", was[i], " in the run"), comparison);
  }
}

absl::Status CompareTensors(const std::string& recorded, const std::string& replayed, WeightComparison* comparison) {
  RUBATO_ASSIGN_OR_RETURN(const std::vector<NamedTensor> was, ReadCheckpointTensors(recorded));
  RUBATO_ASSIGN_OR_RETURN(const std::vector<NamedTensor> is, ReadCheckpointTensors(replayed));
  if (was.size() != is.size()) return OtherModel(recorded, absl::StrCat("has ", was.size(), " tensors"));
  for (size_t tensor = 0; tensor < was.size(); ++tensor) {
    if (was[tensor].name != is[tensor].name || was[tensor].shape != is[tensor].shape) {
      return OtherModel(recorded, absl::StrCat(was[tensor].name, " is not in the replay"));
    }
    CompareArrays(is[tensor].name, was[tensor].values.data(), is[tensor].values.data(), was[tensor].values.size(),
                  comparison);
  }
  return absl::OkStatus();
}

// Of one table: both have their keys ascending.
void CompareRows(const NamedTable& was, const NamedTable& is, WeightComparison* comparison) {
  const auto dimension = static_cast<size_t>(was.dimension);
  size_t i = 0, j = 0;
  for (; i < was.keys.size() || j < is.keys.size(); ++comparison->rows) {
    const bool there = j < is.keys.size() && (i == was.keys.size() || is.keys[j] <= was.keys[i]);
    const bool was_there = i < was.keys.size() && (j == is.keys.size() || was.keys[i] <= is.keys[j]);
    const std::string row = absl::StrCat(was.name, "[key ", there ? is.keys[j] : was.keys[i], "]");
    if (there && was_there) {
      CompareArrays(row, &was.rows[i * dimension], &is.rows[j * dimension], dimension, comparison);
    } else {
      comparison->elements += was.dimension;
      AddDifference(
          was.dimension,
          absl::StrCat(row, there ? " is there, and was not in the run" : " is not there, and was in the run"),
          comparison);
    }
    i += was_there ? 1 : 0;
    j += there ? 1 : 0;
  }
}

}  // namespace

absl::StatusOr<WeightComparison> CompareWeights(const std::string& recorded, const std::string& replayed) {
  WeightComparison comparison;
  RUBATO_RETURN_IF_ERROR(CompareTensors(recorded, replayed, &comparison));
  RUBATO_ASSIGN_OR_RETURN(const std::vector<NamedTable> was, ReadCheckpointTables(recorded));
  RUBATO_ASSIGN_OR_RETURN(const std::vector<NamedTable> is, ReadCheckpointTables(replayed));
  if (was.size() != is.size()) return OtherModel(recorded, absl::StrCat("has ", was.size(), " tables"));
  for (size_t table = 0; table < was.size(); ++table) {
    if (was[table].name != is[table].name || was[table].dimension != is[table].dimension) {
      return OtherModel(recorded, absl::StrCat("table ", was[table].name, " is not in the replay"));
    }
    CompareRows(was[table], is[table], &comparison);
  }
  return comparison;
}

}  // namespace rubato
