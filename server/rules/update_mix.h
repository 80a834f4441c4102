#ifndef RUBATO_SERVER_RULES_UPDATE_MIX_H_
#define RUBATO_SERVER_RULES_UPDATE_MIX_H_

#include <cstdint>
#include <vector>

#include "proto/job_config.pb.h"
#include "server/rules/chunk_rules.h"

namespace rubato::server {

// How the contributions to an update come together: what each counts, and whose hyperparameters hold.
struct UpdateMix {
  struct Part {
    const Contribution* contribution;
    // Its share of all examples.
    double weight;
  };

  // Those with examples, in the order of reduction.
  std::vector<Part> parts;
  // False: the weights stay as they are, and the rest says nothing.
  bool has_effect = false;
  // Of the first contribution that says something of the tensor's group, whether it has examples or not. Null: none
  // does, and the job's hold.
  const v1::OptimizerConfig* hyperparameters = nullptr;
  // Whether another contribution says something else of the group.
  bool disagreement = false;
  // How many of the contributions have examples, for which the job's learning rate is reduced; in (0, 1]. 1 with
  // hyperparameters of a push, whose rate holds as it is.
  double share_with_examples = 1;
};

// What a chunk is to its updates.
struct UpdatedTensor {
  // Of the manifest; 0 in jobs that have none.
  uint32_t group = 0;
  // The job's algorithm is MEAN: of nothing the mean is zeros, while other rules leave the weights as they are.
  bool is_mean = false;
};

// `update` must outlive what is returned. Pure.
UpdateMix MixContributions(const ChunkRules::Update& update, const UpdatedTensor& tensor);

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_UPDATE_MIX_H_
