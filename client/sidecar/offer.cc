#include "client/sidecar/offer.h"

#include "absl/strings/str_cat.h"
#include "common/optimizer_traits.h"
#include "common/task.h"

namespace rubato::client {
namespace {

// Both messages have the same fields, each of which only some algorithms take.
template <typename Message>
void SetValues(const Hyperparameters& values, v1::OptimizerConfig::Algorithm algorithm, Message* message) {
  message->set_learning_rate(values.learning_rate);
  message->set_weight_decay(values.weight_decay);
  if (TakesParameter(algorithm, optimizer::kMomentum)) message->set_momentum(values.momentum);
  if (TakesParameter(algorithm, optimizer::kBeta1)) message->set_beta1(values.beta1);
  if (TakesParameter(algorithm, optimizer::kBeta2)) message->set_beta2(values.beta2);
  if (TakesParameter(algorithm, optimizer::kRho)) message->set_rho(values.rho);
  if (TakesParameter(algorithm, optimizer::kEpsilon)) message->set_epsilon(values.epsilon);
}

// The fields that the algorithm takes.
v1::TableConfig MakeTable(const Model::Table& table) {
  v1::TableConfig config;
  config.set_name(table.name);
  config.set_dimension(table.dimension);
  config.set_algorithm(static_cast<v1::TableConfig::Algorithm>(table.algorithm));
  config.set_learning_rate(table.learning_rate);
  config.set_initial_bound(table.initial_bound);
  const bool adam = config.algorithm() == v1::TableConfig::LAZY_ADAM;
  if (adam || config.algorithm() == v1::TableConfig::ADAGRAD ||
      config.algorithm() == v1::TableConfig::ROW_WISE_ADAGRAD) {
    config.set_epsilon(table.epsilon);
  }
  if (adam) {
    config.set_beta1(table.beta1);
    config.set_beta2(table.beta2);
  }
  if (config.algorithm() == v1::TableConfig::FTRL) {
    config.set_beta(table.beta);
    config.set_l1(table.l1);
    config.set_l2(table.l2);
  }
  if (table.shards != 0) config.set_shards(table.shards);
  if (table.memory_bytes != 0) config.set_memory_bytes(table.memory_bytes);
  if (table.admit_after != 0) config.set_admit_after(table.admit_after);
  if (table.admission_counters != 0) config.set_admission_counters(table.admission_counters);
  config.set_expire_after_steps(table.expire_after_steps);
  config.set_most_rows(table.most_rows);
  if (table.precision == RUBATO_BF16) config.set_precision(v1::TableConfig::BF16);
  if (table.push == RUBATO_BF16) config.set_push(v1::BF16);
  if (table.pull == RUBATO_BF16) config.set_pull(v1::BF16);
  return config;
}

}  // namespace

v1::OfferModelRequest MakeOffer(const Model& model, const v1::TaskId& task) {
  v1::OfferModelRequest offer;
  *offer.mutable_task() = task;
  offer.set_protocol_version(kProtocolVersion);
  offer.mutable_manifest()->set_groups(static_cast<uint32_t>(model.groups.size()));
  for (const Model::Tensor& tensor : model.tensors) {
    v1::ManifestTensor* const entry = offer.mutable_manifest()->add_tensors();
    entry->set_name(tensor.name);
    for (int64_t dimension : tensor.shape) entry->add_shape(dimension);
    entry->set_group(tensor.group);
  }
  for (const Model::Table& table : model.tables) *offer.mutable_manifest()->add_tables() = MakeTable(table);
  v1::OptimizerConfig* const optimizer = offer.mutable_optimizer();
  optimizer->set_algorithm(static_cast<v1::OptimizerConfig::Algorithm>(model.algorithm));
  // Those of all groups come with each push.
  if (!model.groups.empty() && optimizer->algorithm() != v1::OptimizerConfig::MEAN) {
    SetValues(model.groups.front(), optimizer->algorithm(), optimizer);
  }
  if (TakesParameter(optimizer->algorithm(), optimizer::kInitialAccumulator)) {
    optimizer->set_initial_accumulator(model.initial_accumulator);
  }
  if (model.leased_examples > 0) {
    offer.mutable_data()->set_train_examples(model.leased_examples);
    offer.set_shard_examples(model.shard_examples);
    offer.set_epochs(model.epochs);
  }
  return offer;
}

v1::GroupHyperparameters MakeGroup(uint32_t group, const Hyperparameters& values,
                                   v1::OptimizerConfig::Algorithm algorithm) {
  v1::GroupHyperparameters message;
  message.set_group(group);
  SetValues(values, algorithm, &message);
  return message;
}

absl::Status CheckConfig(const v1::JobConfig& config, const v1::OfferModelRequest& offer) {
  const v1::Manifest& manifest = config.model().manifest();
  if (manifest.SerializeAsString() != offer.manifest().SerializeAsString()) {
    return absl::FailedPreconditionError(absl::StrCat("the coordinator's config has another model, of ",
                                                      manifest.tensors_size(), " tensors, than this worker's, of ",
                                                      offer.manifest().tensors_size()));
  }
  if (config.optimizer().algorithm() != offer.optimizer().algorithm()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the coordinator's config has the optimizer ",
                     v1::OptimizerConfig::Algorithm_Name(config.optimizer().algorithm()), ", and this worker ",
                     v1::OptimizerConfig::Algorithm_Name(offer.optimizer().algorithm())));
  }
  return absl::OkStatus();
}

}  // namespace rubato::client
