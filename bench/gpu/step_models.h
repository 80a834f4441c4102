#ifndef RUBATO_BENCH_GPU_STEP_MODELS_H_
#define RUBATO_BENCH_GPU_STEP_MODELS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/model_config.pb.h"

namespace rubato::bench {

// A model whose steps are timed, and its batch. step_torch.py has the same.
struct StepModel {
  std::string name;
  v1::ModelConfig config;
  int64_t batch = 1;
};

// Five linear layers on 4096 inputs, ResNet-20 with group normalisation, and a language model of 12 blocks, 768 wide,
// over 512 bytes. `small`: the same layers, narrow and few, to show that the program runs.
std::vector<StepModel> StepModels(bool small);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_GPU_STEP_MODELS_H_
