#ifndef RUBATO_TESTS_EXPLORER_JOB_SYSTEM_H_
#define RUBATO_TESTS_EXPLORER_JOB_SYSTEM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/explorer/coordinator_actor.h"
#include "tests/explorer/explore.h"
#include "tests/explorer/model.h"
#include "tests/explorer/scope.h"
#include "tests/explorer/server_actor.h"
#include "tests/explorer/worker_actor.h"

namespace rubato::explorer {

// A job of this scope, from the moment in which training begins, with the real rules of servers, workers and
// coordinator, judged by the simulation's oracle. Not thread-safe.
class JobSystem : public System {
 public:
  explicit JobSystem(const Scope& scope) : scope_(scope) {}

  void Restart() override { RestartWith(/*labels=*/false); }
  uint64_t Fingerprint() const override;
  std::vector<Choice> Choices() const override { return model_->schedule.Choices(); }
  void Take(uint64_t event) override;
  std::string Violation() const override { return model_->oracle.violation(); }
  std::string Unfinished() const override;

  // A line for people for each event of this path.
  std::vector<std::string> Tell(const std::vector<uint64_t>& path);

 private:
  void RestartWith(bool labels);
  void StartServer(uint32_t index, uint64_t term);
  void StartWorker(uint32_t index, uint64_t term);
  // Whether anything can come of what this server was.
  bool Matters(const ServerActor& server) const;
  // Whether nothing has to happen to this worker any more.
  bool MayRest(uint32_t index) const;

  const Scope scope_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<CoordinatorActor> coordinator_;
  std::vector<std::unique_ptr<ServerActor>> servers_;  // All that ever started.
  std::vector<std::unique_ptr<WorkerActor>> workers_;
};

}  // namespace rubato::explorer

#endif  // RUBATO_TESTS_EXPLORER_JOB_SYSTEM_H_
