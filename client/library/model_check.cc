#include "client/library/model_check.h"

#include <cmath>
#include <cstdio>
#include <optional>
#include <set>
#include <utility>

namespace rubato::client {
namespace {

// Floats in a row of a table, as TableConfig.dimension.
constexpr int64_t kDimensionMax = 4096;

// As in common/optimizer_traits.h, which the library cannot see.
enum class Range { kNotNegative, kBelowOne, kPositive };

bool Holds(Range range, double value) {
  switch (range) {
    case Range::kNotNegative:
      return std::isfinite(value) && value >= 0;
    case Range::kBelowOne:
      return value >= 0 && value < 1;
    case Range::kPositive:
      return std::isfinite(value) && value > 0;
  }
  return false;
}

const char* TextOf(Range range) {
  switch (range) {
    case Range::kNotNegative:
      return "a number >= 0";
    case Range::kBelowOne:
      return "0 or more, less than 1";
    case Range::kPositive:
      return "a number > 0";
  }
  return "";
}

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", value);
  return text;
}

std::string Check(const std::string& where, const char* name, double value, Range range) {
  if (Holds(range, value)) return "";
  return where + name + " = " + Number(value) + "; " + TextOf(range) + " is allowed";
}

struct Checked {
  const char* name;
  double Hyperparameters::*value;
  Range range;
};

constexpr Checked kLearningRate = {"learning_rate", &Hyperparameters::learning_rate, Range::kNotNegative};
constexpr Checked kWeightDecay = {"weight_decay", &Hyperparameters::weight_decay, Range::kNotNegative};
constexpr Checked kMomentum = {"momentum", &Hyperparameters::momentum, Range::kBelowOne};
constexpr Checked kBeta1 = {"beta1", &Hyperparameters::beta1, Range::kBelowOne};
constexpr Checked kBeta2 = {"beta2", &Hyperparameters::beta2, Range::kBelowOne};
constexpr Checked kRho = {"rho", &Hyperparameters::rho, Range::kBelowOne};
constexpr Checked kEpsilon = {"epsilon", &Hyperparameters::epsilon, Range::kPositive};

using CheckedList = std::vector<Checked>;

// Nothing for what is no algorithm.
std::optional<CheckedList> CheckedOf(rubato_algorithm algorithm) {
  switch (algorithm) {
    case RUBATO_SGD:
      return CheckedList{kLearningRate, kWeightDecay};
    case RUBATO_MOMENTUM:
    case RUBATO_NESTEROV:
      return CheckedList{kLearningRate, kWeightDecay, kMomentum};
    case RUBATO_ADAGRAD:
      return CheckedList{kLearningRate, kWeightDecay, kEpsilon};
    case RUBATO_RMSPROP:
      return CheckedList{kLearningRate, kWeightDecay, kRho, kEpsilon};
    case RUBATO_ADAM:
    case RUBATO_ADAMW:
      return CheckedList{kLearningRate, kWeightDecay, kBeta1, kBeta2, kEpsilon};
    case RUBATO_MEAN:
      return CheckedList{};
  }
  return std::nullopt;
}

std::string ReadTensors(const rubato_model& given, Model* model) {
  if (given.tensor_count == 0 && given.table_count == 0) return "model: no tensors; 1 or more are needed, or a table";
  if (given.tensors == nullptr && given.tensor_count > 0) return "model.tensors: is NULL";
  std::set<std::string> names;
  for (uint32_t i = 0; i < given.tensor_count; ++i) {
    const rubato_tensor& tensor = given.tensors[i];
    const std::string where = "model.tensors[" + std::to_string(i) + "]";
    if (tensor.name == nullptr || tensor.name[0] == '\0') return where + ".name: is empty";
    if (tensor.dimensions > 0 && tensor.shape == nullptr) return where + ".shape: is NULL";
    if (!names.insert(tensor.name).second) return where + ".name: there is another tensor " + tensor.name;
    if (tensor.group >= given.group_count) {
      return where + ".group = " + std::to_string(tensor.group) + " (" + tensor.name + "); the model has " +
             std::to_string(given.group_count) + " groups";
    }
    model->tensors.push_back(
        {.name = tensor.name, .shape = {tensor.shape, tensor.shape + tensor.dimensions}, .group = tensor.group});
  }
  return "";
}

// What servers and coordinators know better is left to them.
std::string ReadTables(const rubato_model& given, Model* model) {
  if (given.tables == nullptr && given.table_count > 0) return "model.tables: is NULL";
  for (uint32_t i = 0; i < given.table_count; ++i) {
    const rubato_table& table = given.tables[i];
    const std::string where = "model.tables[" + std::to_string(i) + "]";
    if (table.name == nullptr || table.name[0] == '\0') return where + ".name: is empty";
    if (table.dimension < 1 || table.dimension > kDimensionMax) {
      return where + ".dimension = " + std::to_string(table.dimension) + " (" + table.name + "); 1 to " +
             std::to_string(kDimensionMax) + " is allowed";
    }
    model->tables.push_back({.name = table.name,
                             .dimension = table.dimension,
                             .algorithm = static_cast<uint32_t>(table.algorithm),
                             .shards = table.shards,
                             .learning_rate = table.learning_rate,
                             .initial_bound = table.initial_bound,
                             .epsilon = table.epsilon,
                             .beta1 = table.beta1,
                             .beta2 = table.beta2,
                             .beta = table.beta,
                             .l1 = table.l1,
                             .l2 = table.l2,
                             .memory_bytes = table.memory_bytes});
    Model::Table& added = model->tables.back();
    if (given.admission != nullptr) {
      added.admit_after = given.admission[i].admit_after;
      added.admission_counters = given.admission[i].counters;
      added.expire_after_steps = given.admission[i].expire_after_steps;
      added.most_rows = given.admission[i].most_rows;
    }
    if (given.row_formats == nullptr) continue;
    const rubato_row_format& format = given.row_formats[i];
    for (const auto& [name, value] :
         {std::pair("precision", format.precision), std::pair("push", format.push), std::pair("pull", format.pull)}) {
      if (value == RUBATO_FLOAT32 || value == RUBATO_BF16) continue;
      return "model.row_formats[" + std::to_string(i) + "]." + name + " = " + std::to_string(static_cast<int>(value)) +
             " (" + table.name + "); RUBATO_FLOAT32 (0) or RUBATO_BF16 (1) is allowed";
    }
    added.precision = static_cast<uint32_t>(format.precision);
    added.push = static_cast<uint32_t>(format.push);
    added.pull = static_cast<uint32_t>(format.pull);
  }
  return "";
}

}  // namespace

Hyperparameters ReadHyperparameters(const rubato_hyperparameters& given) {
  return {.learning_rate = given.learning_rate,
          .weight_decay = given.weight_decay,
          .momentum = given.momentum,
          .beta1 = given.beta1,
          .beta2 = given.beta2,
          .rho = given.rho,
          .epsilon = given.epsilon};
}

std::string CheckHyperparameters(uint32_t group, const Hyperparameters& values, rubato_algorithm algorithm) {
  const std::string where = "group " + std::to_string(group) + ": ";
  for (const Checked& checked : CheckedOf(algorithm).value_or(CheckedList())) {
    if (std::string error = Check(where, checked.name, values.*checked.value, checked.range); !error.empty()) {
      return error;
    }
  }
  return "";
}

std::string ReadModel(const rubato_model& given, Model* model) {
  *model = {};
  if (!CheckedOf(given.algorithm).has_value()) {
    return "model.algorithm = " + std::to_string(given.algorithm) + "; the values of rubato_algorithm are allowed";
  }
  if (given.groups == nullptr || given.group_count == 0) return "model: no groups; 1 or more are needed";
  for (uint32_t group = 0; group < given.group_count; ++group) {
    model->groups.push_back(ReadHyperparameters(given.groups[group]));
    std::string error = CheckHyperparameters(group, model->groups.back(), given.algorithm);
    if (!error.empty()) return error;
  }
  if (std::string error = ReadTensors(given, model); !error.empty()) return error;
  if (std::string error = ReadTables(given, model); !error.empty()) return error;
  if (given.algorithm == RUBATO_ADAGRAD) {
    std::string error = Check("model.", "initial_accumulator", given.initial_accumulator, Range::kNotNegative);
    if (!error.empty()) return error;
  }
  for (const auto& [name, value] :
       {std::pair("leased_examples", given.leased_examples), std::pair("shard_examples", given.shard_examples),
        std::pair("epochs", given.epochs)}) {
    if (value < 0) return std::string("model.") + name + " = " + std::to_string(value) + "; 0 or more is allowed";
  }
  model->algorithm = given.algorithm;
  model->initial_accumulator = given.initial_accumulator;
  model->leased_examples = given.leased_examples;
  model->shard_examples = given.shard_examples;
  model->epochs = given.epochs;
  model->keep_weights = given.keep_weights != 0;
  return "";
}

}  // namespace rubato::client
