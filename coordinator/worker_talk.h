#ifndef RUBATO_COORDINATOR_WORKER_TALK_H_
#define RUBATO_COORDINATOR_WORKER_TALK_H_

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/rules/barriers.h"
#include "coordinator/rules/key_values.h"
#include "proto/coordinator.pb.h"
#include "proto/journal.pb.h"

namespace rubato::coordinator {

// What workers tell each other through the coordinator, with those who wait for it: values by keys, and barriers. Not
// thread-safe; owned by the JobRunner, on whose thread callbacks are called. A rollback leaves it as it is.
class WorkerTalk {
 public:
  using Done = std::function<void(const absl::Status&)>;
  using ValueDone = std::function<void(absl::StatusOr<v1::GetValueReply>)>;
  // Appends to the journal. Its error is the answer, and nothing has changed then.
  using Append = std::function<absl::Status(const v1::JournalRecord& record)>;

  explicit WorkerTalk(Append append) : append_(std::move(append)) {}

  // Of a journal that goes on: takes what is its own.
  void Restore(const std::vector<v1::JournalRecord>& records);

  // Errors of KeyValues::Check and Append.
  void Put(const v1::PutValueRequest& request, const Done& done);
  // NotFound: nobody has put it by the deadline. InvalidArgument: it is no key.
  void Get(const v1::GetValueRequest& request, absl::Time now, absl::Time deadline, ValueDone done);
  // DeadlineExceeded names those who have come. Errors of Barriers::Arrive and Append.
  void Arrive(const v1::BarrierRequest& request, absl::Time deadline, Done done);

  // Answers those whose time is over.
  void Tick(absl::Time now);
  // Answers all who wait.
  void End(const absl::Status& why);

 private:
  struct WaitingGet {
    std::string key;
    absl::Time deadline;
    ValueDone done;
  };
  struct WaitingWorker {
    v1::BarrierRequest request;
    absl::Time deadline;
    Done done;
  };

  void AnswerGets(const std::string& key);
  void OpenBarriers(const std::string& name);

  const Append append_;
  KeyValues values_;
  Barriers barriers_;
  std::list<WaitingGet> gets_;
  std::list<WaitingWorker> workers_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_WORKER_TALK_H_
