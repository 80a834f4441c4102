#ifndef RUBATO_TESTS_EXPLORER_MODEL_H_
#define RUBATO_TESTS_EXPLORER_MODEL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/coordinator.pb.h"
#include "tests/explorer/fingerprint.h"
#include "tests/explorer/schedule.h"
#include "tests/explorer/scope.h"
#include "tests/simulation/checkpoint_directory.h"
#include "tests/simulation/coverage.h"
#include "tests/simulation/job.h"
#include "tests/simulation/oracle.h"

namespace rubato::explorer {

class CoordinatorActor;
class ServerActor;
class WorkerActor;

// Time stands still for everybody but the coordinator, which is told when leases are over.
inline constexpr absl::Duration kLease = absl::Seconds(1);
inline constexpr absl::Duration kTimeout = absl::Seconds(1);
inline absl::Time Start() { return absl::UnixEpoch(); }

// Who has inputs.
enum class Actor : uint64_t { kNetwork = 1, kCoordinator, kWorker, kServer, kPartition };
inline uint64_t IdOf(Actor actor, uint64_t number = 0) { return static_cast<uint64_t>(actor) << 32 | number; }

// Tags of what may happen once.
enum class Once : uint64_t { kCrashWorker = 1, kBreakStream, kRepeat, kTimeout, kCrashCoordinator, kCrashServer };
inline uint64_t TagOf(Once once) { return static_cast<uint64_t>(once); }

// What all actors of one run share.
struct Model {
  Model(const Scope& explored, bool with_labels)
      : scope(explored),
        labels(with_labels),
        oracle({.examples = simulation::kManyExamples, .of_shard = simulation::kShardExamples}, &coverage),
        may_repeat(explored.repeat) {}
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // What people are told of an event; empty, and cheap, while nobody is.
  template <typename... Args>
  std::string Label(const Args&... args) const {
    return labels ? absl::StrCat(Text(args)...) : std::string();
  }

  // Names a process by who it is and how many there were before it: the same in every order of events.
  v1::TaskId NewProcess(v1::TaskId::Role role, uint32_t index) {
    constexpr uint64_t kRoles = 8;
    constexpr uint64_t kIndices = 8;
    v1::TaskId task;
    task.set_role(role);
    task.set_index(index);
    task.set_incarnation((++processes[{role, index}] * kRoles + static_cast<uint64_t>(role)) * kIndices + index);
    return task;
  }

  template <typename T>
  static auto Text(const T& value) {
    if constexpr (std::is_base_of_v<google::protobuf::Message, T>) {
      return value.ShortDebugString();
    } else {
      return absl::AlphaNum(value);
    }
  }

  const Scope scope;
  const bool labels;
  Schedule schedule;
  simulation::Coverage coverage;
  simulation::Oracle oracle;
  simulation::CheckpointDirectory checkpoints;
  // The job as servers were told; without chunks until it has started.
  v1::JobDescription job;
  std::map<std::pair<int, uint32_t>, uint64_t> processes;  // That ever were, by role and index.
  // Starts a process in the place of one that has ended, which had heard of this term.
  std::function<void(const v1::TaskId& ended, uint64_t term)> start_again;
  uint64_t last_token = 0;
  CoordinatorActor* coordinator = nullptr;
  std::vector<ServerActor*> servers;  // By index: the last process of each.
  std::vector<WorkerActor*> workers;
  // Whether the network may still repeat a message.
  bool may_repeat = false;
};

}  // namespace rubato::explorer

#endif  // RUBATO_TESTS_EXPLORER_MODEL_H_
