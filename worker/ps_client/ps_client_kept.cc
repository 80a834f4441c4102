// What a PsClient does with weights that are kept where they have come to (Options::keep_weights).
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/ps_client/ps_client.h"

namespace rubato::worker {

absl::Status PsClient::StoreKept() {
  std::vector<std::shared_ptr<const KeptWeights>> kept(batching_.batches.size());
  {
    MutexLock lock(mu_);
    for (size_t batch = 0; batch < kept.size(); ++batch) {
      if (to_store_[batch]) kept[batch] = kept_[batch];
      to_store_[batch] = false;
    }
  }
  for (size_t batch = 0; batch < kept.size(); ++batch) {
    if (kept[batch] == nullptr) continue;
    const absl::Status stored = Store(static_cast<int>(batch), kept[batch]->weights);
    if (!stored.ok()) return Annotate(stored, absl::StrCat("answer of ", ServerOf(static_cast<int>(batch))));
  }
  return absl::OkStatus();
}

absl::Status PsClient::LetGoOfWeights() {
  {
    MutexLock lock(mu_);
    lets_go_ = true;
  }
  return StoreKept();
}

bool PsClient::HasWeights(int tensor) {
  std::vector<std::shared_ptr<const KeptWeights>> kept;
  {
    MutexLock lock(mu_);
    kept = kept_;
  }
  std::vector<float> come;
  for (const PartOfTensor& part : batching_.parts_of_tensor[tensor]) {
    const std::vector<uint32_t>& chunks = batching_.batches[part.batch].chunks;
    if (kept[part.batch] == nullptr) return false;
    for (size_t i = 0; i < chunks.size(); ++i) {
      const v1::ChunkPlacement& placement = options_.job.chunks(static_cast<int>(chunks[i]));
      if (static_cast<int>(placement.tensor()) != tensor) continue;
      come.resize(placement.length());
      const float* const here = options_.memory->Weights(tensor, placement.offset());
      if (!DecodeWeights(kept[part.batch]->weights[i], placement.length(), is_large_model_, come.data()).ok() ||
          std::memcmp(come.data(), here, come.size() * sizeof(float)) != 0) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace rubato::worker
