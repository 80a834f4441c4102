#ifndef RUBATO_COMMON_SECURITY_METRICS_TOKEN_H_
#define RUBATO_COMMON_SECURITY_METRICS_TOKEN_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/job_config.pb.h"

namespace rubato {

// What a scraper of metrics shows: it reads them with that, and can do nothing else. In the file "metrics.token" of the
// folder of credentials.
std::string MetricsTokenPath(const std::string& folder);

// The token without which metrics are not to be read on `listen`, the value of --metrics_listen; empty: everybody may,
// because nobody listens, because that is an address of loopback, or because the job is insecure (`folder`, that of its
// credentials, is empty). Without certificates all tasks are on one machine, and one that finds no token makes it.
// FailedPrecondition: there are certificates and no token. Otherwise errors as in token_file.h.
absl::StatusOr<std::string> TokenForMetrics(const std::string& folder, const std::string& listen);

// The same of a task that has the job's config.
absl::StatusOr<std::string> TokenForMetrics(const v1::JobConfig& config, const std::string& listen);

}  // namespace rubato

#endif  // RUBATO_COMMON_SECURITY_METRICS_TOKEN_H_
