#include "coordinator/rules/starting_phase.h"

#include <optional>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/task.h"
#include "coordinator/rules/journal_records.h"
#include "coordinator/rules/placement.h"

namespace rubato::coordinator {
namespace {

PlanChange FirstRules(const v1::JobConfig& config) {
  const v1::ConsistencyConfig& consistency = config.consistency();
  PlanChange change;
  change.mode = consistency.mode();
  change.staleness_bound = consistency.staleness_bound();
  change.quorum = consistency.quorum();
  change.compress = !config.compression().off_at_first();
  change.reason = "start";
  return change;
}

// Those under which the checkpoint's plan held.
PlanChange RulesOf(const v1::Plan& plan, const v1::JobConfig& config) {
  PlanChange change;
  change.mode = plan.mode();
  change.staleness_bound = plan.staleness_bound();
  // It may have been capped by a number of members that was lower.
  change.quorum =
      plan.quorum() > 0 && config.consistency().quorum() > 0 ? config.consistency().quorum() : plan.quorum();
  change.learning_rate_scale = plan.learning_rate_scale();
  change.batch_sizes = BatchSizes(plan);
  change.sync_every = plan.sync_every();
  change.momentum = MomentumOf(plan);
  change.compress = !plan.uncompressed();
  change.reason = absl::StrCat("from step ", plan.first_step());
  return change;
}

}  // namespace

std::string StartingPhase::MissingTasks() const {
  const v1::ClusterConfig& cluster = job_->config.cluster();
  std::vector<std::string> names;
  for (uint32_t i = 0; i < cluster.servers(); ++i) {
    const Member* member = job_->membership.Find(v1::TaskId::SERVER, i);
    if (member == nullptr || member->state != v1::TaskStatus::ALIVE) names.push_back(TaskName(v1::TaskId::SERVER, i));
  }
  // Any indices will do; those that are free are named.
  size_t workers = job_->membership.Alive(v1::TaskId::WORKER).size();
  for (uint32_t i = 0; workers < cluster.workers(); ++i) {
    const Member* member = job_->membership.Find(v1::TaskId::WORKER, i);
    if (member != nullptr && member->state == v1::TaskStatus::ALIVE) continue;
    names.push_back(TaskName(v1::TaskId::WORKER, i));
    ++workers;
  }
  constexpr size_t kNamed = 8;
  if (names.size() <= kNamed) return absl::StrJoin(names, ", ");
  const size_t others = names.size() - kNamed;
  names.resize(kNamed);
  return absl::StrCat(absl::StrJoin(names, ", "), " and ", others, " others");
}

bool StartingPhase::MayPlace(absl::Time now) const {
  if (MissingTasks().empty()) return true;
  const bool waited = now - job_->start >= absl::Seconds(job_->config.cluster().server_grace_seconds());
  return WentBack() && waited && !job_->membership.Alive(v1::TaskId::SERVER).empty() &&
         !job_->membership.Alive(v1::TaskId::WORKER).empty();
}

void StartingPhase::PlaceWhenComplete(absl::Time now) {
  if (job_->placed || !MayPlace(now)) return;
  if (const std::string missing = MissingTasks(); !missing.empty()) {
    out_->Log('W', absl::StrCat("goes on without ", missing));
  }
  std::vector<uint32_t> servers;
  for (const Member* server : job_->membership.Alive(v1::TaskId::SERVER)) servers.push_back(server->id.index());
  PlaceChunks(servers, job_->config.cluster().partitions_per_server(), &job_->chunks);
  // One without chunks takes no part, and the journal knows of none but those with chunks.
  std::set<uint32_t> holding;
  for (const v1::ChunkPlacement& chunk : job_->chunks) holding.insert(chunk.server());
  if (absl::Status placed = job_->Place({holding.begin(), holding.end()}, job_->train_examples); !placed.ok()) {
    return end_->Fail(std::string(placed.message()), now);
  }
  out_->Journal(HeaderRecord(*job_), false);
  for (const auto& [key, member] : job_->membership.all()) out_->Journal(TaskRecord(*job_, member.id), false);
  out_->Log(
      'I', absl::StrCat("all tasks are there; ", job_->chunks.size(), " chunks on ", job_->servers.size(), " servers"));
  out_->SendToAll(v1::TaskId::SERVER, job_->Describe());
  out_->SendToAll(v1::TaskId::EVALUATOR, job_->Describe());
  BeginFirstPlan(now);
}

void StartingPhase::BeginFirstPlan(absl::Time now) {
  for (const Member* worker : job_->membership.Alive(v1::TaskId::WORKER)) job_->plan_maker->AddWorker(worker->id, now);
  const PlanChange rules = job_->restore ? RulesOf(job_->restore->plan(), job_->config) : FirstRules(job_->config);
  plans_->Apply(job_->plan_maker->Start(rules, now), now);
}

void StartingPhase::WriteFirstCheckpoint(absl::Time now) {
  if (job_->held_plan.generation() == 0 || (WentBack() && !job_->AwaitsWeights())) return;
  if (checkpoints_->name().empty()) checkpoints_->Begin(kFirstCheckpoint);
  NameAssigner(now);
}

void StartingPhase::NameAssigner(absl::Time now) {
  const std::optional<v1::TaskId> worker = job_->InitialWeightsFrom();
  if (!worker || (job_->assigner && SameTask(*worker, *job_->assigner))) return;
  job_->assigner = worker;
  named_at_ = now;
  out_->Log('I', absl::StrCat(TaskName(*worker), " assigns the initial weights"));
  out_->SendToAll(v1::TaskId::SERVER, job_->Describe());
  out_->SendToAll(v1::TaskId::WORKER, job_->Describe(/*with_plan=*/false));
}

void StartingPhase::CheckAssigned(absl::Time now) {
  const double timeout = job_->config.cluster().wait_timeout_seconds();
  if (!assigning() || now - named_at_ < absl::Seconds(timeout)) return;
  const std::optional<v1::TaskId> worker = job_->InitialWeightsFrom();
  end_->Fail(absl::StrFormat("the initial weights were not assigned within cluster.wait_timeout_seconds, %g, by %s",
                             timeout, worker ? TaskName(*worker) : "any worker: none is left"),
             now);
}

void StartingPhase::Continue(absl::Time now) {
  TellWaiting();
  PlaceWhenComplete(now);
  CheckAssigned(now);
  const double timeout = job_->config.cluster().start_timeout_seconds();
  if (job_->placed || now - job_->start < absl::Seconds(timeout)) return;
  end_->Fail(absl::StrFormat("the job could not start within cluster.start_timeout_seconds, %g: missing %s", timeout,
                             MissingTasks()),
             now);
}

// Tells everybody who is there, when the list of those who are missing has changed.
void StartingPhase::TellWaiting() {
  const std::string missing = job_->placed ? "" : MissingTasks();
  if (missing == told_waiting_) return;
  told_waiting_ = missing;
  if (!missing.empty()) out_->Log('I', absl::StrCat("waiting for ", missing));
  v1::Directive directive;
  directive.mutable_registered()->set_lease_seconds(absl::ToDoubleSeconds(job_->membership.lease()));
  directive.mutable_registered()->set_waiting_for(missing);
  for (v1::TaskId::Role role : {v1::TaskId::SERVER, v1::TaskId::WORKER, v1::TaskId::EVALUATOR}) {
    out_->SendToAll(role, directive);
  }
}

}  // namespace rubato::coordinator
