#include "client/link/model.h"

#include <utility>

namespace rubato::client {
namespace {

struct ModelBody {
  double initial_accumulator = 0;
  int64_t leased_examples = 0;
  int64_t shard_examples = 0;
  int64_t epochs = 0;
  uint32_t algorithm = 0;
  uint32_t groups = 0;
  uint64_t tensors = 0;
  uint64_t tables = 0;
  uint64_t keep_weights = 0;
};

struct TensorBody {
  uint32_t group = 0;
  uint32_t dimensions = 0;
};

struct TableBody {
  int64_t dimension = 0;
  double learning_rate = 0, initial_bound = 0, epsilon = 0, beta1 = 0, beta2 = 0, beta = 0, l1 = 0, l2 = 0;
  uint64_t memory_bytes = 0, admission_counters = 0, expire_after_steps = 0, most_rows = 0;
  uint32_t algorithm = 0;
  uint32_t shards = 0;
  uint32_t admit_after = 0;
  uint32_t precision = 0, push = 0, pull = 0;
};

bool ReadTable(BodyReader* reader, Model::Table* table) {
  TableBody body;
  if (!reader->Text(&table->name) || !reader->Get(&body)) return false;
  *table = {.name = std::move(table->name),
            .dimension = body.dimension,
            .algorithm = body.algorithm,
            .shards = body.shards,
            .learning_rate = body.learning_rate,
            .initial_bound = body.initial_bound,
            .epsilon = body.epsilon,
            .beta1 = body.beta1,
            .beta2 = body.beta2,
            .beta = body.beta,
            .l1 = body.l1,
            .l2 = body.l2,
            .memory_bytes = body.memory_bytes,
            .admit_after = body.admit_after,
            .admission_counters = body.admission_counters,
            .expire_after_steps = body.expire_after_steps,
            .most_rows = body.most_rows,
            .precision = body.precision,
            .push = body.push,
            .pull = body.pull};
  return true;
}

TableBody BodyOf(const Model::Table& table) {
  return {.dimension = table.dimension,
          .learning_rate = table.learning_rate,
          .initial_bound = table.initial_bound,
          .epsilon = table.epsilon,
          .beta1 = table.beta1,
          .beta2 = table.beta2,
          .beta = table.beta,
          .l1 = table.l1,
          .l2 = table.l2,
          .memory_bytes = table.memory_bytes,
          .admission_counters = table.admission_counters,
          .expire_after_steps = table.expire_after_steps,
          .most_rows = table.most_rows,
          .algorithm = table.algorithm,
          .shards = table.shards,
          .admit_after = table.admit_after,
          .precision = table.precision,
          .push = table.push,
          .pull = table.pull};
}

bool ReadTensor(BodyReader* reader, Model::Tensor* tensor) {
  TensorBody body;
  if (!reader->Text(&tensor->name) || !reader->Get(&body)) return false;
  // Before any memory is taken for them.
  if (body.dimensions > reader->bytes_left() / sizeof(int64_t)) return false;
  tensor->group = body.group;
  tensor->shape.resize(body.dimensions);
  for (int64_t& dimension : tensor->shape) {
    if (!reader->Get(&dimension)) return false;
  }
  return true;
}

}  // namespace

std::string EncodeModel(const Model& model) {
  BodyWriter writer;
  writer.Put(ModelBody{.initial_accumulator = model.initial_accumulator,
                       .leased_examples = model.leased_examples,
                       .shard_examples = model.shard_examples,
                       .epochs = model.epochs,
                       .algorithm = model.algorithm,
                       .groups = static_cast<uint32_t>(model.groups.size()),
                       .tensors = model.tensors.size(),
                       .tables = model.tables.size(),
                       .keep_weights = model.keep_weights});
  for (const Hyperparameters& group : model.groups) writer.Put(group);
  for (const Model::Tensor& tensor : model.tensors) {
    writer.Text(tensor.name);
    writer.Put(TensorBody{.group = tensor.group, .dimensions = static_cast<uint32_t>(tensor.shape.size())});
    for (int64_t dimension : tensor.shape) writer.Put(dimension);
  }
  for (const Model::Table& table : model.tables) writer.Text(table.name).Put(BodyOf(table));
  return writer.body();
}

bool DecodeModel(std::string_view body, Model* model) {
  BodyReader reader(body);
  ModelBody counts;
  if (!reader.Get(&counts)) return false;
  if (counts.groups > reader.bytes_left() / sizeof(Hyperparameters)) return false;
  if (counts.tensors > reader.bytes_left() / sizeof(TensorBody)) return false;
  if (counts.tables > reader.bytes_left() / sizeof(TableBody)) return false;
  model->initial_accumulator = counts.initial_accumulator;
  model->leased_examples = counts.leased_examples;
  model->shard_examples = counts.shard_examples;
  model->epochs = counts.epochs;
  model->keep_weights = counts.keep_weights != 0;
  model->algorithm = counts.algorithm;
  model->groups.resize(counts.groups);
  for (Hyperparameters& group : model->groups) {
    if (!reader.Get(&group)) return false;
  }
  model->tensors.resize(counts.tensors);
  for (Model::Tensor& tensor : model->tensors) {
    if (!ReadTensor(&reader, &tensor)) return false;
  }
  model->tables.resize(counts.tables);
  for (Model::Table& table : model->tables) {
    if (!ReadTable(&reader, &table)) return false;
  }
  return reader.AtEnd();
}

uint32_t SlotsOf(rubato_algorithm algorithm) {
  switch (algorithm) {
    case RUBATO_SGD:
    case RUBATO_MEAN:
      return 0;
    case RUBATO_MOMENTUM:
    case RUBATO_NESTEROV:
    case RUBATO_ADAGRAD:
    case RUBATO_RMSPROP:
      return 1;
    case RUBATO_ADAM:
    case RUBATO_ADAMW:
      return 2;
  }
  return 0;
}

}  // namespace rubato::client
