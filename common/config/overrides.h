#ifndef RUBATO_COMMON_CONFIG_OVERRIDES_H_
#define RUBATO_COMMON_CONFIG_OVERRIDES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/job_config.pb.h"

namespace rubato {

// Applies "path=value" overrides in order.
//
//   optimizer.learning_rate=0.1        a number, name, or string (no quotes)
//   consistency.mode=async             an enum value, in either case
//   model.layers[1].linear.units=64    an element of a list, counted from 0; the index after the last one appends
//   data.idx.train_images=foo          inside a oneof: switches to idx when another source was set
//   model.layers[2].relu={}            a whole message in text format, in braces
//   consistency.schedule=              nothing: the field becomes absent, the list empty
//
// InvalidArgument with a line for every override that is wrong: "--set <path>=<value>: value <value>; allowed: ...".
// The config is then half changed and of no use.
absl::Status ApplyOverrides(const std::vector<std::string>& overrides, v1::JobConfig* config);

}  // namespace rubato

#endif  // RUBATO_COMMON_CONFIG_OVERRIDES_H_
