#ifndef RUBATO_TESTS_SIMULATION_SIM_ROWS_H_
#define RUBATO_TESTS_SIMULATION_SIM_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "proto/coordinator.pb.h"
#include "tests/simulation/chunk_groups.h"
#include "tests/simulation/chunk_state.h"
#include "tests/simulation/row_message.h"
#include "tests/simulation/world.h"
#include "worker/ps_client/table_parts.h"

namespace rubato::simulation {

// What a task's messages say of rows of the job's table: the worker's own code merges the keys of a batch, adds up
// their gradients and deals them to the messages. Not thread-safe.
class SimRows {
 public:
  // Of the messages about these groups of chunks. `world` must outlive it.
  SimRows(const World* world, const v1::JobDescription& job, const std::vector<ChunkGroup>& groups);

  // Nothing if the group is of tensors. It asks for the keys of `reader`, and pushes the rows of so many examples of
  // `push`; with 0, none.
  std::optional<RowMessage> Message(size_t group, const PushId& reader, const PushId& push = {}, int64_t examples = 0);

 private:
  // Of all groups.
  struct Dealt {
    PushId of;
    int64_t examples = 0;
    std::vector<uint64_t> keys = {};
    std::vector<worker::KeyPart> parts = {};
    std::vector<float> gradients = {};
  };

  Dealt DealRead(const PushId& reader) const;
  Dealt DealPush(const PushId& push, int64_t examples) const;

  const World* const world_;
  worker::TableParts parts_;
  // The last ones.
  std::optional<Dealt> read_, pushed_;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_SIM_ROWS_H_
