#ifndef RUBATO_TESTS_SIMULATION_CHECKPOINT_DIRECTORY_H_
#define RUBATO_TESTS_SIMULATION_CHECKPOINT_DIRECTORY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "proto/coordinator.pb.h"
#include "proto/parameter_server.pb.h"
#include "tests/simulation/chunk_state.h"

namespace rubato::simulation {

// The checkpoint directory, which coordinator, servers and workers share: what was written to it survives them all.
// Cuts of the same name have the same directory, where the later one takes the place of the earlier one file by file.
// Not thread-safe.
class CheckpointDirectory {
 public:
  struct Part {
    v1::Cut cut;
    // Of a server: its chunks, and the servers whose parts have all chunks together.
    std::map<uint32_t, ChunkState> chunks = {};
    std::vector<uint32_t> servers = {};
    // Of a worker: steps that it had done.
    int64_t steps = 0;
  };

  // What an earlier cut of this name has here is gone from when the part is begun.
  void BeginWrite(const v1::TaskId& task, const v1::Cut& cut);
  void Write(const v1::TaskId& task, Part part);
  // Null when there is none.
  const Part* Find(const v1::Cut& cut, v1::TaskId::Role role, uint32_t index) const;
  // All chunks of the cut, from the parts that say of each other that they have them; nothing if one is missing.
  std::optional<std::map<uint32_t, ChunkState>> ReadChunks(const v1::Cut& cut) const;
  // Removes the task's parts of all checkpoints "step<number>" but these.
  // And not the one of the cut that the task has begun last, of which the message may know nothing.
  void Keep(const v1::TaskId& task, const v1::KeepCheckpoints& keep, const v1::Cut& last);

 private:
  using Key = std::tuple<std::string, v1::TaskId::Role, uint32_t>;  // The checkpoint's name, and whose part it is.
  std::map<Key, Part> parts_;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_CHECKPOINT_DIRECTORY_H_
