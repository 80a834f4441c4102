#ifndef RUBATO_COMMON_STORAGE_CHECKPOINT_RESTORER_H_
#define RUBATO_COMMON_STORAGE_CHECKPOINT_RESTORER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/storage/checkpoint.h"
#include "proto/checkpoint.pb.h"
#include "proto/parameter_server.pb.h"

namespace rubato {

// Fills slices of tensors from a checkpoint or a safetensors file, whatever slices its tasks had: for another number of
// servers, or another size of chunks. From a checkpoint also shards of tables, whichever server had them. Reads one
// part after another, so that no more than one is in memory. Not thread-safe.
//
//   CheckpointRestorer restorer;
//   restorer.Add({"fc1.weight", {512, 784}, offset, length, values, {momentum}});
//   RUBATO_RETURN_IF_ERROR(restorer.ReadServers("runs/a/checkpoints/final"));
//   ... restorer.slices()[0].updates ...
class CheckpointRestorer {
 public:
  struct Slice {
    std::string tensor;
    std::vector<int64_t> shape;
    int64_t offset = 0;
    int64_t length = 0;
    // `length` elements each; they belong to the caller, and are undefined after an error.
    float* values = nullptr;
    std::vector<float*> slots;
    // Read: the most of any part of it.
    int64_t updates = 0;
    // Read: the same of ChunkRecord.compensated.
    int64_t compensated = 0;
    // Read: the version of the chunk that it is in; the highest if it is in several.
    int64_t version = 0;
  };

  struct Shard {
    std::string table;
    // Which of how many.
    uint32_t shard = 0;
    uint32_t shards = 0;
    v1::TableConfig::Algorithm algorithm = v1::TableConfig::ALGORITHM_UNSPECIFIED;
    uint32_t dimension = 0;
    uint32_t row_floats = 0;
    // Takes the shard as it was added, with its keys strictly ascending; its arrays are gone afterwards. Its error is
    // ReadServers'.
    std::function<absl::Status(const CheckpointShard& shard)> restore;
  };

  // Slices may not overlap.
  void Add(Slice slice);
  // Each shard once.
  void AddShard(Shard shard);

  // Weights and optimizer slots, and shards: each `restore` is called until it has succeeded once, also if ReadServers
  // is called again after an error, which then has to be of the same checkpoint. Errors of ServersOfCheckpoint;
  // FailedPrecondition when the checkpoint is of a model or optimizer that is another in shape: names the tensor or
  // table, and what both say; DataLoss when a shard is there twice or its keys are out of order: names table, shard and
  // place. With the id of a cut, parts of another one are FailedPrecondition, the file `cut` need not be there,
  // because the caller knows that the cut is complete, and those parts may be missing in which no slice and no shard
  // is: a server finds its own on a disk that is its own. With `is_complete` the same without a cut.
  absl::Status ReadServers(const std::string& directory, uint64_t cut_id = 0, bool is_complete = false);
  // After an error of ReadServers: whether a part of this manifest has elements or a shard still to be filled. Then,
  // with that part in the directory, all is read again.
  bool Lacks(const v1::CheckpointManifest& manifest) const;
  // Weights alone, by name, from a safetensors file that fits the model (SafetensorsFile::CheckFits): slots and
  // shards are left as they are, and no slice has had updates. Errors of SafetensorsFile::Open and Read.
  absl::Status ReadSafetensors(const std::string& path);

  const std::vector<Slice>& slices() const { return slices_; }

 private:
  struct Wanted {
    Shard shard;
    // In the checkpoint that is being read.
    bool is_found = false;
    bool is_restored = false;
  };

  absl::Status Take(const CheckpointPart& part);
  absl::Status TakeChunk(const CheckpointPart& part, const v1::ChunkRecord& chunk);
  absl::Status TakeShard(const CheckpointPart& part, const v1::ShardRecord& record);
  static absl::Status Restore(const CheckpointPart& part, const v1::ShardRecord& record, Wanted& wanted);
  // Whether every slice and shard has been filled.
  absl::Status CheckFilled(const std::string& directory) const;

  std::vector<Slice> slices_;
  // By slice: elements that were read.
  std::vector<int64_t> filled_;
  absl::flat_hash_map<std::string, std::vector<size_t>> of_tensor_;
  absl::flat_hash_map<std::string, std::vector<Wanted>> of_table_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_STORAGE_CHECKPOINT_RESTORER_H_
