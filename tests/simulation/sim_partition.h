#ifndef RUBATO_TESTS_SIMULATION_SIM_PARTITION_H_
#define RUBATO_TESTS_SIMULATION_SIM_PARTITION_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/rules/assignment.h"
#include "server/rules/partition.h"
#include "server/table_message.h"
#include "server/table_store.h"
#include "tests/simulation/row_message.h"
#include "tests/simulation/world.h"

namespace rubato::simulation {

// How often a server looks at the requests that wait.
inline constexpr absl::Duration kServerTick = absl::Milliseconds(50);

// One partition of a server: the real rules and the real rows of the job's table. Other weights are the list of pushes
// that were applied to them. Shows everything that crosses its interface to the oracle. Belongs to a process and ends
// with it. Not thread-safe.
class SimPartition : private server::PartitionSink {
 public:
  using SendReply = std::function<void(const v1::ExchangeReply&)>;

  struct Options {
    World* world;
    // Over all servers.
    Oracle::Place place;
    std::string name;
    // With the shards that `tables` has.
    std::vector<uint32_t> chunks;
    // Called with every chunk that is captured for a cut.
    std::function<void(const v1::Cut& cut, uint32_t chunk, const ChunkState& state)> on_captured;
  };

  // The world must outlive it.
  SimPartition(const Options& options, std::unique_ptr<server::TableStore> tables);

  // What a chunk begins with.
  void Restore(uint32_t chunk, const ChunkState& state);
  // A client assigns the weights of these chunks.
  void OnAssign(const v1::TaskId& worker, const std::vector<uint32_t>& chunks, const SendReply& send);
  server::Assignment& assignment() { return assignment_; }
  // A request has come over the wire; its token is assigned here.
  void OnRequest(server::PartitionRequest request, const std::optional<RowMessage>& rows, SendReply send);
  // The stream to this task broke: forgets what is open.
  void ForgetTask(const v1::TaskId& task);
  // Of everybody: the process ends.
  void ForgetAll();
  // The process stands still.
  void Postpone(absl::Duration length);
  server::Partition& rules() { return rules_; }

  // Work of the coordinator is done in order: no earlier than this.
  absl::Time free_at = absl::InfinitePast();

 private:
  struct Open {
    v1::TaskId task;
    SendReply send;
    bool snapshot = false;
    // What it asks of the table. Null: it is about tensors.
    std::shared_ptr<const server::TableMessage> table;
  };

  bool IsFinite(uint32_t, const server::Contribution&) override { return true; }
  void Apply(const server::ChunkRules::Update& update) override;
  void Answer(const server::PartitionReply& reply) override;
  void Capture(uint64_t token, uint32_t chunk) override { oracle_->Captured(token, chunk); }
  void CaptureCut(const v1::Cut& cut, uint32_t chunk) override;
  void Log(const v1::UpdateLogRecord& record) override;

  void TraceRequest(const server::PartitionRequest& request) const;
  // What a request says of rows, to which its contributions then belong. Null, and a violation: it is refused.
  std::shared_ptr<const server::TableMessage> ReadRows(const RowMessage& rows, server::PartitionRequest* request);
  // Shows the oracle the rows that an answer hands out.
  void HandOutRows(const server::TableMessage& table);
  // Applies what the tables have taken of updates, as a real partition does before it answers or looks at them.
  void FinishTables() const;
  // The chunk as it is.
  ChunkState StateOf(uint32_t chunk) const;
  // The first of the parts of a table in which a shard counts pushes, and how many there are; none: it does not count.
  std::pair<uint64_t, uint64_t> PartsOf(uint32_t chunk) const;
  // Applies the update to the one number that weights are here. Returns whether members disagree.
  bool ChangeValue(const server::ChunkRules::Update& update, double* value) const;
  const std::string& name() const { return options_.name; }

  const Options options_;
  World* const world_;
  Oracle* const oracle_;
  server::Partition rules_;
  server::Assignment assignment_;
  const std::unique_ptr<server::TableStore> tables_;
  // Without rows.
  std::map<uint32_t, ChunkState> weights_;
  std::map<uint64_t, Open> open_;  // By token.
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_SIM_PARTITION_H_
