#ifndef RUBATO_COMMON_STORAGE_CHECKPOINT_RESTORER_H_
#define RUBATO_COMMON_STORAGE_CHECKPOINT_RESTORER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "common/storage/checkpoint.h"
#include "proto/parameter_server.pb.h"

namespace rubato {

// Fills slices of tensors from a checkpoint or a safetensors file, whatever slices its tasks had: for another number of
// servers, or another size of chunks. Reads one part after another, so that no more than one is in memory. Not
// thread-safe.
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

  // Slices may not overlap.
  void Add(Slice slice);

  // Weights and optimizer slots. Errors of ServersOfCheckpoint; FailedPrecondition when the checkpoint is of a model or
  // optimizer that is another in shape: names the tensor, and what both say. With the id of a cut, parts of another one
  // are FailedPrecondition, the file `cut` need not be there, because the caller knows that the cut is complete, and
  // those parts may be missing in which nothing of the slices is: a server finds its own on a disk that is its own.
  // With `is_complete` the same without a cut.
  absl::Status ReadServers(const std::string& directory, uint64_t cut_id = 0, bool is_complete = false);
  // After an error of ReadServers: whether a part of this manifest has elements that are still to be filled. Then, with
  // that part in the directory, all is read again.
  bool Lacks(const v1::CheckpointManifest& manifest) const;
  // Weights alone, by name, from a safetensors file that fits the model (SafetensorsFile::CheckFits): slots are left as
  // they are, and no slice has had updates. Errors of SafetensorsFile::Open and Read.
  absl::Status ReadSafetensors(const std::string& path);

  const std::vector<Slice>& slices() const { return slices_; }

 private:
  absl::Status Take(const CheckpointPart& part);
  absl::Status TakeChunk(const CheckpointPart& part, const v1::ChunkRecord& chunk);
  // Whether every slice has been filled.
  absl::Status CheckFilled(const std::string& directory) const;

  std::vector<Slice> slices_;
  // By slice: elements that were read.
  std::vector<int64_t> filled_;
  absl::flat_hash_map<std::string, std::vector<size_t>> of_tensor_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_STORAGE_CHECKPOINT_RESTORER_H_
