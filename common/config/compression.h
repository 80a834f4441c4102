#ifndef RUBATO_COMMON_CONFIG_COMPRESSION_H_
#define RUBATO_COMMON_CONFIG_COMPRESSION_H_

#include "absl/strings/string_view.h"
#include "proto/job_config.pb.h"

namespace rubato {

// How a job's gradients (push) and weights (pull) of one tensor are written in payloads: the first entry of
// compression.tensors that matches the name counts, and compression itself if there is none or it leaves the
// direction out. The codec is never unspecified, and the fraction never 0 if it takes one. The config need not have
// been through common/config. Pure.
v1::CodecConfig PushCodec(const v1::JobConfig& config, absl::string_view tensor);
v1::CodecConfig PullCodec(const v1::JobConfig& config, absl::string_view tensor);

// Whether some tensor's gradients are encoded, so that plans may say whether they are.
bool CompressesPushes(const v1::JobConfig& config);

// Whether TensorCompression.tensor stands for this tensor: its name, or the beginning of it followed by '*'. Pure.
bool MatchesTensor(absl::string_view pattern, absl::string_view tensor);

}  // namespace rubato

#endif  // RUBATO_COMMON_CONFIG_COMPRESSION_H_
