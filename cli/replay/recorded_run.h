#ifndef RUBATO_CLI_REPLAY_RECORDED_RUN_H_
#define RUBATO_CLI_REPLAY_RECORDED_RUN_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/parameter_server.pb.h"
#include "proto/update_log.pb.h"

namespace rubato {

// What a run's update logs say of the order in which it trained: which version of each chunk each step was computed
// from, and which pushes made which version. Together with the config that decides the run's bits.
struct RecordedRun {
  // A step of which at least one push was recorded.
  struct Step {
    int64_t step = 0;
    uint64_t generation = 0;
    // DYNAMIC dispatch: the batch. Without a shard: there was none.
    v1::ShardSlice slice;
    // By chunk: the version that it was computed from.
    std::vector<int64_t> versions;
  };
  // One incarnation of a worker.
  struct Member {
    v1::TaskId task;
    // Ascending.
    std::vector<Step> steps;
  };
  struct Push {
    // Indices of `members` and of its steps.
    size_t member = 0;
    size_t step = 0;
    // 0: it was empty, or not finite.
    uint64_t examples = 0;
    // Of the gradient; nothing: it was empty, or the log is an older program's.
    std::optional<uint32_t> gradient_crc = std::nullopt;
  };
  // The pushes, in the order of reduction.
  using Update = std::vector<Push>;

  // By generation, as they were decided.
  std::map<uint64_t, v1::Plan> plans;
  std::vector<Member> members;
  // By chunk: the update that made version 1, 2 and so on.
  std::vector<std::vector<Update>> updates;
};

// Builds a RecordedRun from the records of all partitions' logs. Records of one log come in their order; the logs in
// any. Pure; not thread-safe.
//
//   RecordedRunBuilder builder(chunks);
//   for (each log) for (each record) RUBATO_RETURN_IF_ERROR(builder.Add("server 0, partition 1", record));
//   RUBATO_ASSIGN_OR_RETURN(RecordedRun run, std::move(builder).Build());
class RecordedRunBuilder {
 public:
  // `chunks`: of the job.
  explicit RecordedRunBuilder(size_t chunks) : updates_(chunks), sources_(chunks) {}

  // DataLoss, with `where` and what is wrong: the record does not follow from those before.
  absl::Status Add(const std::string& where, const v1::UpdateLogRecord& record);
  // DataLoss: what the logs say of a step does not fit together, or the versions that it was computed from are missing.
  absl::StatusOr<RecordedRun> Build() &&;

 private:
  // Worker and incarnation.
  using Key = std::pair<uint32_t, uint64_t>;
  struct Served {
    int64_t version = -1;
    // A push says so, and not an answer alone, of which there may be several.
    bool pushed = false;
  };
  struct StepRecord {
    bool pushed = false;
    uint64_t generation = 0;
    v1::ShardSlice slice;
    // By chunk; version -1: nobody has spoken of it. Empty before that of all.
    std::vector<Served> served;
    // Which log spoke of it last.
    std::string where;
  };
  struct PushRecord {
    Key worker;
    int64_t step = 0;
    uint64_t examples = 0;
    std::optional<uint32_t> gradient_crc = std::nullopt;
  };

  Served& ServedOf(StepRecord& step, uint32_t chunk) const;
  void AddPlan(const v1::Plan& plan);
  absl::Status AddServed(const std::string& where, const v1::ServedRecord& served);
  absl::Status AddUpdate(const std::string& where, const v1::UpdateRecord& update);
  absl::Status AddPush(const std::string& where, const v1::UpdateRecord& update);
  absl::Status CheckChunk(const std::string& where, uint32_t chunk);

  std::map<uint64_t, v1::Plan> plans_;
  std::map<Key, std::map<int64_t, StepRecord>> steps_;
  // By chunk.
  std::vector<std::vector<std::vector<PushRecord>>> updates_;
  // By chunk: the log that has it.
  std::vector<std::string> sources_;
};

}  // namespace rubato

#endif  // RUBATO_CLI_REPLAY_RECORDED_RUN_H_
