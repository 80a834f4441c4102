#include "cli/capacity/job_layout.h"

#include <numeric>
#include <utility>

#include "common/codec_traits.h"
#include "common/config/compression.h"
#include "common/model_spec.h"
#include "common/status.h"
#include "coordinator/rules/placement.h"

namespace rubato::capacity {
namespace {

// The job's only plan.
constexpr uint64_t kGeneration = 1;

v1::TaskId TaskOf(v1::TaskId::Role role, uint32_t index) {
  v1::TaskId task;
  task.set_role(role);
  task.set_index(index);
  task.set_incarnation(index + 1);
  return task;
}

v1::Plan FirstPlan(const v1::JobConfig& config) {
  v1::Plan plan;
  plan.set_generation(kGeneration);
  plan.set_mode(config.consistency().mode());
  plan.set_staleness_bound(config.consistency().staleness_bound());
  plan.set_quorum(config.consistency().quorum());
  for (uint32_t worker = 0; worker < config.cluster().workers(); ++worker) {
    *plan.add_members() = TaskOf(v1::TaskId::WORKER, worker);
  }
  return plan;
}

absl::Status PlaceModel(const v1::JobConfig& config, const ModelSpec& model, v1::JobDescription* job) {
  if (!model.tables.empty()) {
    return absl::UnimplementedError("model.tables: what rows of tables take is not in the simulation yet");
  }
  RUBATO_ASSIGN_OR_RETURN(std::vector<v1::ChunkPlacement> chunks,
                          coordinator::SplitIntoChunks(model, config.cluster().chunk_bytes()));
  std::vector<uint32_t> servers(config.cluster().servers());
  std::iota(servers.begin(), servers.end(), 0);
  coordinator::PlaceChunks(servers, config.cluster().partitions_per_server(), &chunks);
  for (uint32_t server : servers) *job->add_servers()->mutable_task() = TaskOf(v1::TaskId::SERVER, server);
  for (v1::ChunkPlacement& chunk : chunks) *job->add_chunks() = std::move(chunk);
  return absl::OkStatus();
}

int64_t EncodedBytes(const v1::CodecConfig& codec, int64_t length) {
  return TraitsOf(codec.codec()).bytes(codec.fraction(), length);
}

void MeasureBatches(const ModelSpec& model, JobLayout* layout) {
  for (const v1::ChunkPlacement& chunk : layout->job.chunks()) {
    layout->chunk_bytes.push_back(chunk.length() * static_cast<int64_t>(sizeof(float)));
  }
  for (const worker::ChunkBatch& batch : layout->batching.batches) {
    int64_t pushed = 0, pulled = 0;
    for (uint32_t index : batch.chunks) {
      const v1::ChunkPlacement& chunk = layout->job.chunks(static_cast<int>(index));
      const std::string& tensor = model.tensors[chunk.tensor()].name;
      pushed += EncodedBytes(PushCodec(layout->config, tensor), chunk.length());
      pulled += EncodedBytes(PullCodec(layout->config, tensor), chunk.length());
    }
    layout->pushed_bytes.push_back(pushed);
    layout->pulled_bytes.push_back(pulled);
  }
}

// As PsClient::PushTensor counts them: a batch is due with the last of its tensors.
void ListLayers(const ModelSpec& model, JobLayout* layout) {
  const worker::Batching& batching = layout->batching;
  std::vector<size_t> layers;
  for (size_t layer = 0; layer < model.layers.size(); ++layer) {
    if (model.layers[layer].tensors.empty()) continue;
    layers.push_back(layer);
    LayerExchange& exchange = layout->layers.emplace_back();
    exchange.name = model.layers[layer].name;
    for (int tensor : model.layers[layer].tensors) {
      for (const worker::PartOfTensor& part : batching.parts_of_tensor[static_cast<size_t>(tensor)]) {
        exchange.needed.push_back(part.batch);
      }
    }
  }
  std::vector<size_t> missing;
  for (const std::vector<int>& tensors : batching.tensors_of_batch) missing.push_back(tensors.size());
  for (size_t i = layers.size(); i-- > 0;) {
    const std::vector<int>& tensors = model.layers[layers[i]].tensors;
    for (auto tensor = tensors.rbegin(); tensor != tensors.rend(); ++tensor) {
      for (const worker::PartOfTensor& part : batching.parts_of_tensor[static_cast<size_t>(*tensor)]) {
        if (--missing[static_cast<size_t>(part.batch)] == 0) layout->layers[i].due.push_back(part.batch);
      }
    }
  }
}

}  // namespace

absl::StatusOr<JobLayout> MakeJobLayout(const v1::JobConfig& config, bool in_place) {
  if (config.model().has_manifest()) {
    return absl::InvalidArgumentError(
        "model.manifest: a client's model has no layers; allowed: a config with model.layers");
  }
  RUBATO_ASSIGN_OR_RETURN(const ModelSpec model, BuildModelSpec(config.model()));
  JobLayout layout;
  layout.config = config;
  layout.plan = FirstPlan(config);
  RUBATO_RETURN_IF_ERROR(PlaceModel(config, model, &layout.job));
  layout.batching = worker::MakeBatches(layout.job, static_cast<int>(model.tensors.size()),
                                        static_cast<int64_t>(config.cluster().message_bytes()),
                                        [in_place](uint32_t) { return in_place; });
  MeasureBatches(model, &layout);
  ListLayers(model, &layout);
  return layout;
}

}  // namespace rubato::capacity
