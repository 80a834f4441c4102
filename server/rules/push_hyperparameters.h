#ifndef RUBATO_SERVER_RULES_PUSH_HYPERPARAMETERS_H_
#define RUBATO_SERVER_RULES_PUSH_HYPERPARAMETERS_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/job_config.pb.h"
#include "proto/parameter_server.pb.h"

namespace rubato::server {

// With which hyperparameters a client's push has its tensors updated, by group. Immutable.
class PushHyperparameters {
 public:
  using Groups = google::protobuf::RepeatedPtrField<v1::GroupHyperparameters>;

  // What a job allows.
  struct Rules {
    // The job's optimizer, and the groups of its manifest; 0: no client's job.
    const v1::OptimizerConfig* optimizer = nullptr;
    uint32_t groups = 0;
  };

  // Checks the groups of a push: each a group of the job, named once, with values that the algorithm takes, in their
  // ranges. InvalidArgument names the field, its value and what is allowed.
  static absl::StatusOr<std::shared_ptr<const PushHyperparameters>> Read(const Groups& groups, const Rules& rules);

  // The job's optimizer with what the push says of this group. Null: it says nothing.
  const v1::OptimizerConfig* Find(uint32_t group) const;

 private:
  std::vector<std::pair<uint32_t, v1::OptimizerConfig>> groups_;
};

// Whether an update with one is the same as with the other, of two that Find gave.
bool SameHyperparameters(const v1::OptimizerConfig& a, const v1::OptimizerConfig& b);

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_PUSH_HYPERPARAMETERS_H_
