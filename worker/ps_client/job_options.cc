#include "worker/ps_client/job_options.h"

#include "common/config/compression.h"

namespace rubato::worker {

PsClient::Options PsClientOptions(const v1::JobConfig& config, const ModelSpec& spec) {
  PsClient::Options client;
  for (const TensorSpec& tensor : spec.tensors) client.tensors.push_back(tensor.name);
  client.tables = spec.tables;
  client.seed = config.seed();
  client.connections_per_server = static_cast<int>(config.cluster().connections_per_server());
  client.stop_on_non_finite = config.consistency().on_non_finite() == v1::ConsistencyConfig::STOP_JOB;
  client.message_bytes = static_cast<int64_t>(config.cluster().message_bytes());
  client.wait_timeout = absl::Seconds(config.cluster().wait_timeout_seconds());
  client.reconnect_timeout = absl::Seconds(config.cluster().start_timeout_seconds());
  return client;
}

std::vector<CodecSpec> PushCodecs(const v1::JobConfig& config, const ModelSpec& spec) {
  std::vector<CodecSpec> codecs;
  for (const TensorSpec& tensor : spec.tensors) {
    const v1::CodecConfig codec = PushCodec(config, tensor.name);
    codecs.push_back({codec.codec(), codec.fraction()});
  }
  return codecs;
}

}  // namespace rubato::worker
