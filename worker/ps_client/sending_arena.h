#ifndef RUBATO_WORKER_PS_CLIENT_SENDING_ARENA_H_
#define RUBATO_WORKER_PS_CLIENT_SENDING_ARENA_H_

#include <cstddef>
#include <memory>
#include <string>

#include "common/log.h"
#include "common/model_spec.h"
#include "common/shared_memory/arena.h"
#include "proto/job_config.pb.h"

namespace rubato::worker {

// Memory that servers on this host read gradients from: for each tensor the gradient and, if it is encoded, what is
// sent instead; and if there are tables, keys and rows. `name` is the task's. Null if the config or the system does not
// allow it; the log says why.
std::shared_ptr<SharedArena> CreateSendingArena(const v1::JobConfig& config, const ModelSpec& spec,
                                                const std::string& name, Logger* log);

// Part of the arena, which it keeps; null if the arena is null or full. Thread-safe.
std::shared_ptr<void> AllocateIn(const std::shared_ptr<SharedArena>& arena, size_t bytes);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_SENDING_ARENA_H_
