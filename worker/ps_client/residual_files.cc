#include "worker/ps_client/residual_files.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "common/status.h"
#include "common/storage/checkpoint.h"
#include "common/storage/checkpoint_restorer.h"
#include "common/storage/safetensors_file.h"

namespace rubato::worker {
namespace {

bool Empty(const Residuals& residuals) {
  return std::all_of(residuals.begin(), residuals.end(), [](const auto* residual) { return residual->empty(); });
}

}  // namespace

absl::StatusOr<bool> WriteResiduals(const std::string& directory, const v1::TaskId& task, const v1::JobConfig& config,
                                    const ModelSpec& spec, const v1::JobDescription& job, const Residuals& residuals) {
  if (Empty(residuals)) return false;
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<CheckpointWriter> writer, CheckpointWriter::Create(directory, task));
  for (size_t i = 0; i < residuals.size(); ++i) {
    if (residuals[i]->empty()) continue;
    const v1::ChunkPlacement& placement = job.chunks(static_cast<int>(i));
    const TensorSpec& tensor = spec.tensors[placement.tensor()];
    CheckpointChunk chunk;
    chunk.record.set_chunk(static_cast<uint32_t>(i));
    chunk.record.set_tensor(tensor.name);
    for (int64_t dimension : tensor.shape) chunk.record.add_shape(dimension);
    chunk.record.set_offset(placement.offset());
    chunk.record.set_length(placement.length());
    chunk.values = residuals[i]->data();
    RUBATO_RETURN_IF_ERROR(writer->Add(chunk));
  }
  v1::CheckpointManifest manifest;
  manifest.set_job_name(config.name());
  manifest.set_servers(config.cluster().servers());
  RUBATO_RETURN_IF_ERROR(writer->Finish(std::move(manifest)));
  return true;
}

absl::StatusOr<bool> ReadResiduals(const std::string& directory, uint32_t index, const ModelSpec& spec,
                                   const v1::JobDescription& job, const Residuals& residuals) {
  // A safetensors file has weights alone.
  if (Empty(residuals) || IsSafetensorsPath(directory)) return false;
  CheckpointRestorer restorer;
  for (size_t i = 0; i < residuals.size(); ++i) {
    if (residuals[i]->empty()) continue;
    const v1::ChunkPlacement& placement = job.chunks(static_cast<int>(i));
    CheckpointRestorer::Slice slice;
    slice.tensor = spec.tensors[placement.tensor()].name;
    slice.shape = spec.tensors[placement.tensor()].shape;
    slice.offset = placement.offset();
    slice.length = placement.length();
    slice.values = residuals[i]->data();
    restorer.Add(std::move(slice));
  }
  const absl::Status status = restorer.ReadWorker(directory, index);
  if (absl::IsNotFound(status)) return false;
  if (!status.ok()) return status;
  return true;
}

}  // namespace rubato::worker
