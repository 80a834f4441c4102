#ifndef RUBATO_CLI_COMMAND_CODEC_CHOICE_H_
#define RUBATO_CLI_COMMAND_CODEC_CHOICE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/job_config.pb.h"

namespace rubato {

// How tensors travel, as the user writes it: "none", "bf16", "fp16", "int8", "one_bit", "top_k:0.01". In both
// directions where the codec can carry weights, otherwise for gradients alone.
struct CodecChoice {
  v1::Codec codec = v1::NONE;
  // TOP_K only.
  double fraction = 0;

  // As the user writes it.
  std::string Name() const;
};

// A list without repetitions. InvalidArgument for anything else. `option` is the name in the message.
absl::StatusOr<std::vector<CodecChoice>> ParseCodecs(const std::vector<std::string>& texts, const std::string& option);

// The config with that compression for all tensors. InvalidArgument when the result is not a valid config.
absl::StatusOr<v1::JobConfig> ConfigWithCodec(const v1::JobConfig& config, const CodecChoice& codec);

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_CODEC_CHOICE_H_
