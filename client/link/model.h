#ifndef RUBATO_CLIENT_LINK_MODEL_H_
#define RUBATO_CLIENT_LINK_MODEL_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client/link/frame.h"
#include "client/rubato_client.h"

namespace rubato::client {

// What rubato_define says, as it travels to the sidecar. Pure.
struct Model {
  struct Tensor {
    std::string name;
    std::vector<int64_t> shape;
    uint32_t group = 0;
  };

  struct Table {
    std::string name;
    // As in rubato_table.
    int64_t dimension = 0;
    uint32_t algorithm = 0;
    uint32_t shards = 0;
    double learning_rate = 0, initial_bound = 0, epsilon = 0, beta1 = 0, beta2 = 0, beta = 0, l1 = 0, l2 = 0;
    uint64_t memory_bytes = 0;
    // As in rubato_admission.
    uint32_t admit_after = 0;
    uint64_t admission_counters = 0, expire_after_steps = 0, most_rows = 0;
    // As in rubato_row_format.
    uint32_t precision = 0, push = 0, pull = 0;
  };

  std::vector<Tensor> tensors;
  std::vector<Table> tables;
  std::vector<Hyperparameters> groups;
  uint32_t algorithm = 0;  // rubato_algorithm.
  double initial_accumulator = 0;
  int64_t leased_examples = 0;
  int64_t shard_examples = 0;
  int64_t epochs = 0;
  bool keep_weights = false;
};

std::string EncodeModel(const Model& model);
// False if the body is no model.
bool DecodeModel(std::string_view body, Model* model);

// Arrays that servers keep of each tensor besides its weights.
uint32_t SlotsOf(rubato_algorithm algorithm);

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_LINK_MODEL_H_
