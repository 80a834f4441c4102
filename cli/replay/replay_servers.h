#ifndef RUBATO_CLI_REPLAY_REPLAY_SERVERS_H_
#define RUBATO_CLI_REPLAY_REPLAY_SERVERS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/replay/recorded_run.h"
#include "cli/replay/replay_tables.h"
#include "common/clock.h"
#include "common/model_spec.h"
#include "common/mutex.h"
#include "kernels/optimizer/encoded_gradient.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"
#include "server/chunk_snapshot.h"
#include "server/chunk_store.h"
#include "server/table_message.h"

namespace rubato {

// What the servers do in a replay: a pull is answered with the version of each chunk that the run recorded for the
// step, whenever it is asked for, and pushes are applied in the recorded order, whenever they come. Weights of a
// version are put aside for whoever is to compute from it; rows of tables, of which a step reads a few, are read when
// the shard is at the version, and its next update waits for that. Nobody waits for ever: which keys a step needs
// depends on its batch alone and is told before it waits for anything, so in the run all that a reading waits for came
// before it, and the update after it. Thread-safe: a thread for each member.
class ReplayServers {
 public:
  struct Options {
    // All outlive the object.
    const v1::JobConfig* config = nullptr;
    const ModelSpec* model = nullptr;
    // Says which server has which chunk.
    const v1::JobDescription* job = nullptr;
    const RecordedRun* run = nullptr;
    // Of the same job and servers. Null: the job has none.
    ReplayTables* tables = nullptr;
    uint32_t servers = 1;
    // How many updates of each chunk Keep has; nothing: all.
    std::optional<int64_t> until_version;
    const Clock* clock = nullptr;
    // The config is the run's: what is pushed is of as many examples as the record says.
    bool same_config = true;
    // Called with the number of updates that are done, and of all; not for each of them. May be empty.
    std::function<void(int64_t done, int64_t all)> progress;
  };
  // A gradient, which stays where it is until AwaitApplied of its member.
  struct Pushed {
    uint64_t examples = 0;
    double epoch = 0;
    ByteSpan bytes;
    v1::Codec codec = v1::NONE;
    // Of a shard of a table, instead: keys and gradients. Null: there are none, or the chunk is of a tensor.
    std::shared_ptr<const server::RowGradient> rows = nullptr;
  };

  explicit ReplayServers(const Options& options);

  // The chunk's weights for a step of a member. Waits for the pushes that make the version. Cancelled or whatever
  // Cancel was told. DataLoss: every member waits for another, so that the record cannot have been so; names who waits
  // for what. DeadlineExceeded: nobody has pushed anything for longer than cluster.wait_timeout_seconds.
  absl::StatusOr<server::ChunkStore::Wire> Await(size_t member, size_t step, uint32_t chunk);
  // The member's push of its step. DataLoss: with the same config, it is another gradient, or of another number of
  // examples, than the record says. A gradient that is not finite counts as empty.
  absl::Status Push(size_t member, size_t step, uint32_t chunk, const Pushed& pushed);
  // Which of a table's rows the member's step computes with (TableMessage.asked), also if there are none: once for each
  // table and step, and of all tables before the step waits for anything.
  void AskRows(size_t member, size_t step, std::shared_ptr<const server::TableMessage> asked);
  // The rows, by shard, encoded as a server answers with them. Errors as Await. REQUIRES: they were asked for, and not
  // awaited yet.
  absl::StatusOr<std::vector<std::vector<uint8_t>>> AwaitRows(size_t member, size_t step, int table);
  // Waits until everything that the member has pushed is applied. Errors as Await.
  absl::Status AwaitApplied(size_t member);
  // The member has no further step, and waits for nobody.
  void Leave(size_t member);
  // Ends every wait, now and later, with `status`.
  void Cancel(const absl::Status& status);
  // Whether every chunk has come to `until_version`, or to its last version; then all waits end with Cancelled.
  bool IsComplete();
  // Why waits ended; OK: they did not have to.
  absl::Status failed();

  // A server's chunks, ascending, at `until_version` or at their last version. REQUIRES: IsComplete().
  std::vector<server::ChunkSnapshot> Keep(uint32_t server);

 private:
  // Of a member: a step and a chunk.
  struct Key {
    size_t member;
    size_t step;
    uint32_t chunk;
    auto operator<=>(const Key&) const = default;
  };
  struct Arrived {
    Pushed pushed;
    EncodedGradient of_tensor;
    ByteSpan piece;

    const EncodedGradient& gradient() const { return pushed.rows != nullptr ? *pushed.rows : of_tensor; }
  };
  // What a member's step wants of a table.
  struct AskedRows {
    std::shared_ptr<const server::TableMessage> message;
    // Where the keys of each shard begin in it, and where they end.
    std::vector<size_t> begins;
    // By shard.
    std::vector<std::vector<uint8_t>> rows;
    // Shards that are not at the version yet.
    size_t missing = 0;
  };
  // A member and a step of it.
  using Place = std::pair<size_t, size_t>;
  struct Reader {
    int64_t version;
    size_t member;
    size_t step;
    auto operator<=>(const Reader&) const = default;
  };
  struct Chunk {
    // Null: it is a shard of a table.
    server::ChunkStore* store = nullptr;
    // Updates that are done.
    int64_t version = 0;
    // Who computes from which version, ascending; those before the first have theirs.
    std::vector<Reader> readers;
    size_t next_reader = 0;
    // Of a shard: those who compute from this version and have not said with which keys. It has no update until then.
    std::set<Place> unread;
    // What is pushed and has an update.
    absl::flat_hash_map<Place, const RecordedRun::Push*> recorded;
    // Those of updates that are not done.
    std::map<Place, std::unique_ptr<Arrived>> arrived;
    std::optional<server::ChunkSnapshot> kept;
  };
  struct Member {
    bool there = true;
    // What it waits for; null: it does not.
    const std::function<bool()>* awaited = nullptr;
    // "step 12 of worker 1 waits for version 7 of chunk 3"
    std::string waits;
    // Pushes that are not applied yet.
    int64_t open = 0;
  };

  // Does the updates of the chunk that are next and complete.
  void ApplyWhatIsDue(uint32_t chunk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ApplyNext(uint32_t chunk, const RecordedRun::Update& update) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The chunk is at a version: puts it aside for all who compute from it.
  void SetAside(uint32_t chunk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Reads a shard, which is at the version that the step computes from; false: it has not said which keys yet.
  bool ReadRows(size_t member, size_t step, uint32_t chunk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsShard(uint32_t chunk) const { return options_.tables != nullptr && options_.tables->Has(chunk); }
  // Whether all pushes of the chunk's next update have come.
  bool HasNextUpdate(const Chunk& chunk, const std::vector<RecordedRun::Update>& updates) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // "version 3 of chunk 7 waits for step 12 of worker 1 to read rows of version 2", for each shard that could go on.
  std::vector<std::string> UpdatesThatWaitForReaders() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // "step 12 of worker 1 waits for version 7 of chunk 3"
  std::string DescribeWait(size_t member, size_t step, uint32_t chunk) const;
  server::ChunkSnapshot KeepAsIs(uint32_t chunk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Wait(size_t member, const std::function<bool()>& done, std::string waits)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Fails when all who are there wait in vain.
  void CheckStall() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  const v1::TaskId& TaskOf(size_t member) const { return options_.run->members[member].task; }
  const v1::Plan& PlanOf(size_t member, size_t step) const {
    return options_.run->plans.at(options_.run->members[member].steps[step].generation);
  }
  // "step 12 of worker 1"
  std::string Describe(size_t member, size_t step) const;
  absl::Status CheckAgainstRecord(const Key& key, const RecordedRun::Push& recorded, const Arrived& arrived) const;

  const Options options_;
  Mutex mu_;
  CondVar changed_;
  std::vector<std::unique_ptr<server::ChunkStore>> stores_ ABSL_GUARDED_BY(mu_);
  std::vector<Chunk> chunks_ ABSL_GUARDED_BY(mu_);
  std::vector<Member> members_ ABSL_GUARDED_BY(mu_);
  std::map<Key, server::ChunkStore::Wire> aside_ ABSL_GUARDED_BY(mu_);
  // By member and step, and by table.
  std::map<std::pair<Place, int>, AskedRows> asked_ ABSL_GUARDED_BY(mu_);
  int64_t updates_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t all_updates_ ABSL_GUARDED_BY(mu_) = 0;
  // Chunks that have come as far as they have to.
  size_t complete_ ABSL_GUARDED_BY(mu_) = 0;
  // When somebody pushed last.
  absl::Time pushed_at_ ABSL_GUARDED_BY(mu_);
  absl::Status failed_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato

#endif  // RUBATO_CLI_REPLAY_REPLAY_SERVERS_H_
