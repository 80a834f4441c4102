#ifndef RUBATO_COMMON_CONFIG_NEAREST_NAMES_H_
#define RUBATO_COMMON_CONFIG_NEAREST_NAMES_H_

#include <google/protobuf/descriptor.h>

#include <string>

#include "absl/strings/string_view.h"

namespace rubato {

// For a name that is no field of `descriptor`: what may have been meant, as in "; did you mean batch_size?". These are
// the fields of `descriptor` that are spelled most alike (Levenshtein 1966), at most three, and fields of that very
// name elsewhere under `root`, by path, as in "training.batch_size". Empty when there are none.
std::string NearestFields(absl::string_view name, const google::protobuf::Descriptor* descriptor,
                          const google::protobuf::Descriptor* root);

}  // namespace rubato

#endif  // RUBATO_COMMON_CONFIG_NEAREST_NAMES_H_
