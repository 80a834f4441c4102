#ifndef RUBATO_CLI_LAUNCH_GPU_ASSIGNMENT_H_
#define RUBATO_CLI_LAUNCH_GPU_ASSIGNMENT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "proto/job_config.pb.h"

namespace rubato {

// Whether tasks are assigned a machine's GPUs round-robin: unless they compute on the CPU, or the config says which
// GPU.
bool TakesTurns(const v1::TrainingConfig& training);

// training.device_index of the task whose turn it is, counted from 0, on a machine with so many GPUs: tasks get
// groups of training.gpus of them round-robin. Nothing if the config's own holds: none is assigned, or there are not
// two GPUs.
std::optional<uint32_t> AssignedGpu(const v1::TrainingConfig& training, uint32_t gpus, uint32_t turn);

// What is wrong with a machine that has `found` GPUs, if training.device is CUDA and its tasks take `needed`;
// empty: nothing.
std::string GpuProblem(uint32_t found, uint32_t needed);

}  // namespace rubato

#endif  // RUBATO_CLI_LAUNCH_GPU_ASSIGNMENT_H_
