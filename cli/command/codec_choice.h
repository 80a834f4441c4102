#ifndef RUBATO_CLI_COMMAND_CODEC_CHOICE_H_
#define RUBATO_CLI_COMMAND_CODEC_CHOICE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/job_config.pb.h"

namespace rubato {

// How tensors travel, as the user writes it: a codec's name in small letters, with its fraction if it takes one:
// "bf16", "top_k:0.01". In both directions if the codec can carry weights, otherwise for gradients alone.
struct CodecChoice {
  v1::Codec codec = v1::NONE;
  // 0 if the codec takes none.
  double fraction = 0;

  // As the user writes it.
  std::string Name() const;
};

// "none, bf16, ..., top_k:F, ...": what a user can write, for messages.
std::string CodecChoices();

// A list without repetitions. InvalidArgument for anything else. `option` is the name in the message.
absl::StatusOr<std::vector<CodecChoice>> ParseCodecs(const std::vector<std::string>& texts, const std::string& option);

// The config with that compression for all tensors. InvalidArgument when the result is not a valid config.
absl::StatusOr<v1::JobConfig> ConfigWithCodec(const v1::JobConfig& config, const CodecChoice& codec);

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_CODEC_CHOICE_H_
