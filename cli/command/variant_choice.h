#ifndef RUBATO_CLI_COMMAND_VARIANT_CHOICE_H_
#define RUBATO_CLI_COMMAND_VARIANT_CHOICE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/job_config.pb.h"

namespace rubato {

// A job that is compared with others, as the user writes it: "NAME: PATH=VALUE; PATH=VALUE", each as --set takes it. A
// semicolon cannot be part of a value.
struct VariantChoice {
  std::string name;
  std::vector<std::string> overrides;
};

// Names consist of letters, digits and . _ -, 1 to 64 of them, begin with a letter or digit, and differ from each other
// and from `taken`. InvalidArgument for anything else. `option` is the name in the message.
absl::StatusOr<std::vector<VariantChoice>> ParseVariants(const std::vector<std::string>& texts,
                                                         const std::vector<std::string>& taken,
                                                         const std::string& option);

// The config with the variant's changes. InvalidArgument, with the variant's name, when the result is not a valid
// config, or changes what is not compared: name, seed, run_directory.
absl::StatusOr<v1::JobConfig> ConfigOfVariant(const v1::JobConfig& config, const VariantChoice& variant);

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_VARIANT_CHOICE_H_
