#include "worker/ps_client/sending_arena.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/shared_memory/blocks.h"

namespace rubato::worker {

std::shared_ptr<SharedArena> CreateSendingArena(const v1::JobConfig& config, const ModelSpec& spec,
                                                const std::string& name, Logger* log) {
  if (config.cluster().shared_memory() == v1::ClusterConfig::OFF) return nullptr;
  // Four times the weights: once for the gradient, twice for what TOP_K makes of it if it keeps everything, an index
  // with each value, and once for the rounding of parts; a device
  // wants whole pages. Pages that are not used cost nothing.
  size_t bytes = size_t{1} << 20;
  for (const TensorSpec& tensor : spec.tensors) bytes += 4 * sizeof(float) * NumElements(tensor.shape) + 8192;
  if (!spec.tables.empty()) bytes += kRowRoomBytes;
  absl::StatusOr<std::shared_ptr<SharedArena>> arena = SharedArena::Create(name, bytes);
  if (arena.ok()) return *std::move(arena);
  log->Warning(absl::StrCat("shares no memory with servers on this host: ", arena.status().message()));
  return nullptr;
}

std::shared_ptr<void> AllocateIn(const std::shared_ptr<SharedArena>& arena, size_t bytes) {
  void* memory = arena == nullptr ? nullptr : arena->Allocate(bytes);
  return memory == nullptr ? nullptr : std::shared_ptr<void>(arena, memory);
}

}  // namespace rubato::worker
