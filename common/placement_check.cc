#include "common/placement_check.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/shape.h"

namespace rubato {
namespace {

absl::Status Wrong(int chunk, const std::string& what) {
  return absl::FailedPreconditionError(absl::StrCat("job.chunks[", chunk, "]", what));
}

// Follows the chunks through a model.
class Walk {
 public:
  explicit Walk(const ModelSpec& model) : model_(model) {}

  absl::Status Take(int index, const v1::ChunkPlacement& chunk) {
    if (IsDone()) return Wrong(index, ": one more than the model has");
    if (chunk.tensor() != tensor_) {
      return Wrong(index, absl::StrCat(".tensor: value ", chunk.tensor(), "; expected ", tensor_));
    }
    if (chunk.offset() != next_) {
      return Wrong(index, absl::StrCat(".offset: value ", chunk.offset(), "; expected ", next_));
    }
    const bool is_shard = tensor_ >= model_.tensors.size();
    const int64_t left = End() - next_;
    if (is_shard ? chunk.length() != 0 : chunk.length() < 1 || chunk.length() > left) {
      return Wrong(index, absl::StrCat(".length: value ", chunk.length(),
                                       "; allowed: ", is_shard ? "0" : absl::StrCat("1 to ", left)));
    }
    next_ += is_shard ? 1 : chunk.length();
    if (next_ == End()) {
      ++tensor_;
      next_ = 0;
    }
    return absl::OkStatus();
  }

  bool IsDone() const { return tensor_ == model_.tensors.size() + model_.tables.size(); }
  size_t tensor() const { return tensor_; }

 private:
  // Of the tensor's elements, or the table's shards.
  int64_t End() const {
    if (tensor_ < model_.tensors.size()) return NumElements(model_.tensors[tensor_].shape);
    return model_.tables[tensor_ - model_.tensors.size()].config.shards();
  }

  const ModelSpec& model_;
  size_t tensor_ = 0;
  int64_t next_ = 0;
};

}  // namespace

absl::Status CheckPlacements(const v1::JobDescription& job, const ModelSpec& model, uint32_t partitions) {
  Walk walk(model);
  for (int i = 0; i < job.chunks_size(); ++i) {
    const v1::ChunkPlacement& chunk = job.chunks(i);
    if (absl::Status taken = walk.Take(i, chunk); !taken.ok()) return taken;
    if (chunk.partition() >= partitions) {
      return Wrong(i, absl::StrCat(".partition: value ", chunk.partition(), "; allowed: 0 to ", partitions - 1));
    }
  }
  if (walk.IsDone()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "job.chunks: ", job.chunks_size(), " of them, which end in the middle of the model, at tensor ", walk.tensor()));
}

}  // namespace rubato
