#ifndef RUBATO_COMMON_CONFIG_FINGERPRINT_H_
#define RUBATO_COMMON_CONFIG_FINGERPRINT_H_

#include <cstdint>
#include <string>

#include "proto/job_config.pb.h"

namespace rubato {

// A number that two tasks agree on exactly when their loaded configs say the same, but for what may differ between
// machines (run_directory, training.device, training.device_index, training.gpus), between the starts of one job
// (cluster.servers, cluster.workers, cluster.server_grace_seconds), and what changes nothing of what is computed
// (checkpoint, observability). Never 0.
uint64_t ConfigFingerprint(const v1::JobConfig& config);

// What ConfigFingerprint tells apart in two loaded configs, as "training.max_steps: 4000 -> 400", with ", " between
// several; empty: nothing.
std::string ConfigDifference(const v1::JobConfig& before, const v1::JobConfig& after);

// The config as a textproto that LoadJobConfig reads back as the same config.
std::string ConfigText(const v1::JobConfig& config);

}  // namespace rubato

#endif  // RUBATO_COMMON_CONFIG_FINGERPRINT_H_
