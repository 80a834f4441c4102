#ifndef RUBATO_WORKER_TRAINING_PREFETCH_OPTIONS_H_
#define RUBATO_WORKER_TRAINING_PREFETCH_OPTIONS_H_

#include <memory>

#include "common/clock.h"
#include "proto/job_config.pb.h"
#include "worker/data/dataset.h"
#include "worker/data/prefetcher.h"

namespace rubato::worker {

// How a job's worker reads its examples ahead. Pure.
Prefetcher::Options PrefetchOptions(const v1::JobConfig& config, std::shared_ptr<const Dataset> dataset,
                                    const Clock* clock);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINING_PREFETCH_OPTIONS_H_
