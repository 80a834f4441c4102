#include "tests/explorer/job_system.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace rubato::explorer {

void JobSystem::RestartWith(bool labels) {
  workers_.clear();
  servers_.clear();
  coordinator_.reset();
  model_ = std::make_unique<Model>(scope_, labels);
  coordinator_ = std::make_unique<CoordinatorActor>(model_.get());
  model_->coordinator = coordinator_.get();
  model_->start_again = [this](const v1::TaskId& ended, uint64_t term) {
    ended.role() == v1::TaskId::SERVER ? StartServer(ended.index(), term) : StartWorker(ended.index(), term);
  };
  model_->servers.resize(scope_.servers);
  model_->workers.resize(scope_.workers);
  for (uint32_t index = 0; index < scope_.servers; ++index) StartServer(index, 0);
  for (uint32_t index = 0; index < scope_.workers; ++index) StartWorker(index, 0);
  // The start has one order: nobody has begun anything.
  while (!coordinator_->training() && !model_->schedule.Choices().empty()) model_->schedule.TakeFirst();
  coordinator_->OfferRequests();
  coordinator_->OfferFaults();
  for (auto& server : servers_) server->OfferFaults();
  for (auto& worker : workers_) worker->OfferFaults();
}

void JobSystem::StartServer(uint32_t index, uint64_t term) {
  servers_.push_back(std::make_unique<ServerActor>(model_.get(), index, term));
  model_->servers[index] = servers_.back().get();
}

void JobSystem::StartWorker(uint32_t index, uint64_t term) {
  workers_.push_back(std::make_unique<WorkerActor>(model_.get(), index, term));
  model_->workers[index] = workers_.back().get();
}

bool JobSystem::Matters(const ServerActor& server) const {
  auto knows = [&server](const WorkerActor* worker) { return worker->job() != 0 && worker->job() == server.job(); };
  return server.alive() || std::any_of(model_->workers.begin(), model_->workers.end(), knows);
}

uint64_t JobSystem::Fingerprint() const {
  std::string state;
  for (const auto& server : servers_) {
    if (Matters(*server)) server->AppendState(&state);
  }
  for (const WorkerActor* worker : model_->workers) worker->AppendState(&state);
  return FingerprintOf(model_->schedule.Fingerprint(), coordinator_->Fingerprint(), uint64_t{model_->may_repeat},
                       state);
}

void JobSystem::Take(uint64_t event) {
  model_->schedule.Take(event);
  // Time stands still: nothing is late, but every update must be in the log.
  model_->oracle.CheckTime(Start());
}

bool JobSystem::MayRest(uint32_t index) const {
  if (model_->workers[index]->state() != WorkerActor::State::kRuns) return true;
  auto has_stopped = [this](const v1::TaskId& other) {
    return model_->workers[other.index()]->state() == WorkerActor::State::kDone;
  };
  // Otherwise it may only wait for one that has stopped to work, and stays.
  for (const ServerActor* server : model_->servers) {
    for (const server::HeldStart& held : server->HeldStarts()) {
      if (held.worker != index || !scope_.stay) continue;
      if (std::any_of(held.waiting_for.begin(), held.waiting_for.end(), has_stopped)) return true;
    }
  }
  return false;
}

std::string JobSystem::Unfinished() const {
  bool rests = true;
  for (uint32_t index = 0; index < scope_.workers; ++index) rests = rests && MayRest(index);
  // What the operator has asked for too late is answered when the job ends, which takes time.
  if (rests) return "";
  std::string text = absl::StrCat("I4: nothing can happen any more\n", coordinator_->Describe(), "\n");
  for (const WorkerActor* worker : model_->workers) absl::StrAppend(&text, worker->Describe(), "\n");
  for (const ServerActor* server : model_->servers) absl::StrAppend(&text, server->Describe());
  return text;
}

std::vector<std::string> JobSystem::Tell(const std::vector<uint64_t>& path) {
  std::vector<std::string> lines;
  RestartWith(/*labels=*/true);
  for (uint64_t event : path) {
    lines.push_back(model_->schedule.LabelOf(event));
    Take(event);
  }
  return lines;
}

}  // namespace rubato::explorer
