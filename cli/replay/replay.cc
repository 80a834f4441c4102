#include "cli/replay/replay.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/replay/recorded_run.h"
#include "cli/replay/replay_servers.h"
#include "cli/replay/replay_tables.h"
#include "cli/replay/replay_worker.h"
#include "common/config/awaited_model.h"
#include "common/config/checkpoint_directory.h"
#include "common/config/fingerprint.h"
#include "common/config/load.h"
#include "common/log.h"
#include "common/model_spec.h"
#include "common/status.h"
#include "common/storage/file.h"
#include "common/storage/update_log.h"
#include "common/task.h"
#include "coordinator/rules/placement.h"
#include "google/protobuf/util/message_differencer.h"
#include "server/part_files.h"
#include "worker/data/open_dataset.h"

namespace rubato {
namespace {

constexpr char kFinal[] = "final";

absl::Status CannotReplay(const std::string& why) {
  return absl::FailedPreconditionError(absl::StrCat("this run cannot be replayed: ", why));
}

// What overrides may change: how gradients are encoded, and what updates make of them. All else decides which steps
// there are, and on what.
void ClearWhatMayChange(v1::JobConfig* config) {
  config->clear_run_directory();
  config->clear_optimizer();
  config->clear_compression();
  // Ringmaster says which pushes make a version.
  if (!config->consistency().compensation().has_ringmaster()) config->mutable_consistency()->clear_compensation();
  config->mutable_training()->clear_clip_norm();
  config->mutable_training()->clear_device();
}

absl::Status CheckOverrides(v1::JobConfig recorded, v1::JobConfig changed) {
  ClearWhatMayChange(&recorded);
  ClearWhatMayChange(&changed);
  std::string differences;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&differences);
  if (differencer.Compare(recorded, changed)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--set: a replay may change optimizer, compression, training.clip_norm, training.device and "
      "consistency.compensation, but for ringmaster; the order of the run depends on what else is changed here:\n",
      differences));
}

absl::StatusOr<v1::JobConfig> LoadConfig(const ReplayOptions& options) {
  const std::string path = JoinPath(options.run_directory, "job.textproto");
  RUBATO_ASSIGN_OR_RETURN(const v1::JobConfig recorded, LoadJobConfig(path, {}, {.may_await_model = true}));
  if (IsClientJob(recorded)) return CannotReplay("what its workers computed is in their own program");
  if (!recorded.training().start_from().empty()) {
    return CannotReplay("it began with training.start_from, and not with the seed's weights");
  }
  RUBATO_ASSIGN_OR_RETURN(v1::JobConfig config, LoadJobConfig(path, options.overrides));
  RUBATO_RETURN_IF_ERROR(CheckOverrides(recorded, config));
  config.set_run_directory(options.output);
  config.clear_observability();
  config.mutable_training()->clear_trace_steps();
  return config;
}

absl::Status AddLog(const ReplayOptions& options, const std::string& name, RecordedRunBuilder* builder) {
  RUBATO_ASSIGN_OR_RETURN(const auto log, UpdateLogReader::Open(JoinPath(options.run_directory, name)));
  if (name != UpdateLogName(log->header().server(), log->header().partition())) {
    return CannotReplay(absl::StrCat("it went back to a checkpoint, as ", name, " shows"));
  }
  v1::UpdateLogRecord record;
  for (int64_t number = 1;; ++number) {
    RUBATO_ASSIGN_OR_RETURN(const bool more, log->Next(&record));
    if (!more) break;
    RUBATO_RETURN_IF_ERROR(Annotate(builder->Add(name, record), absl::StrCat("record ", number)));
  }
  if (log->torn()) return CannotReplay(absl::StrCat(name, " ends in the middle of a record: its server was killed"));
  return absl::OkStatus();
}

absl::StatusOr<RecordedRun> ReadRecord(const ReplayOptions& options, size_t chunks) {
  RUBATO_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDirectory(options.run_directory));
  std::sort(names.begin(), names.end());
  RecordedRunBuilder builder(chunks);
  bool found = false;
  for (const std::string& name : names) {
    if (!absl::StartsWith(name, "updates-") || !absl::EndsWith(name, ".log")) continue;
    RUBATO_RETURN_IF_ERROR(AddLog(options, name, &builder));
    found = true;
  }
  if (!found) {
    return absl::NotFoundError(
        absl::StrCat(options.run_directory, ": holds no update logs; the job must run with cluster.update_log: true"));
  }
  RUBATO_ASSIGN_OR_RETURN(RecordedRun run, std::move(builder).Build());
  if (run.members.empty()) return CannotReplay("no step of it was recorded");
  return run;
}

absl::StatusOr<v1::JobDescription> PlaceOn(const v1::JobConfig& config, const ModelSpec& spec, uint32_t servers) {
  RUBATO_ASSIGN_OR_RETURN(std::vector<v1::ChunkPlacement> chunks,
                          coordinator::SplitIntoChunks(spec, config.cluster().chunk_bytes()));
  std::vector<uint32_t> indices;
  for (uint32_t server = 0; server < servers; ++server) indices.push_back(server);
  coordinator::PlaceChunks(indices, /*partitions_per_server=*/1, &chunks);
  v1::JobDescription job;
  for (v1::ChunkPlacement& chunk : chunks) *job.add_chunks() = std::move(chunk);
  return job;
}

// All members at once; the first error of any.
absl::Status TrainAll(const ReplayWorkerOptions& shared, const ReplayOptions& options) {
  ReplayServers* const servers = shared.servers;
  std::vector<std::thread> threads;
  for (size_t member = 0; member < shared.run->members.size(); ++member) {
    threads.emplace_back([&, member] {
      ReplayWorkerOptions own = shared;
      const v1::TaskId& task = shared.run->members[member].task;
      Logger log(TaskName(task), options.clock, {.incarnation = task.incarnation(), .quiet = true});
      own.log = &log;
      own.member = member;
      if (absl::Status status = TrainRecordedSteps(own); !status.ok()) {
        // What contradicts the record names its worker itself.
        const bool is_named = absl::IsCancelled(status) || absl::IsDataLoss(status);
        servers->Cancel(is_named ? status : Annotate(status, TaskName(task)));
      }
      servers->Leave(member);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return servers->IsComplete() ? absl::OkStatus() : servers->failed();
}

absl::Status WriteWeights(const ReplayOptions& options, const v1::JobConfig& config, const RecordedRun& run,
                          ReplayServers* servers) {
  RUBATO_RETURN_IF_ERROR(WriteFileAtomically(JoinPath(options.output, "job.textproto"), ConfigText(config)));
  std::vector<std::vector<server::ChunkSnapshot>> parts;
  std::vector<uint32_t> holding;
  for (uint32_t index = 0; index < options.servers; ++index) {
    parts.push_back(servers->Keep(index));
    if (!parts.back().empty()) holding.push_back(index);
  }
  for (uint32_t index : holding) {
    server::PartFiles::Options files = {
        .directory = CheckpointDirectory(config), .task = {}, .job_name = config.name(), .servers = holding};
    files.task.set_role(v1::TaskId::SERVER);
    files.task.set_index(index);
    server::Part part;
    part.name = kFinal;
    part.plan = run.plans.rbegin()->second;
    part.chunks = parts[index];
    RUBATO_RETURN_IF_ERROR(server::PartFiles(files).Write(part, [] { return false; }).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<WeightComparison>> CompareWithRun(const ReplayOptions& options, v1::JobConfig config) {
  const std::string replayed = JoinPath(CheckpointDirectory(config), kFinal);
  config.set_run_directory(options.run_directory);
  const std::string recorded = JoinPath(CheckpointDirectory(config), kFinal);
  if (!FileExists(recorded)) return std::nullopt;
  RUBATO_ASSIGN_OR_RETURN(const WeightComparison comparison, CompareWeights(recorded, replayed));
  return comparison;
}

}  // namespace

absl::StatusOr<ReplayReport> ReplayRun(const ReplayOptions& options) {
  RUBATO_ASSIGN_OR_RETURN(const v1::JobConfig config, LoadConfig(options));
  RUBATO_ASSIGN_OR_RETURN(const ModelSpec spec, BuildModelSpec(config.model()));
  RUBATO_ASSIGN_OR_RETURN(const v1::JobDescription job, PlaceOn(config, spec, options.servers));
  RUBATO_ASSIGN_OR_RETURN(const RecordedRun run, ReadRecord(options, static_cast<size_t>(job.chunks_size())));
  RUBATO_ASSIGN_OR_RETURN(std::shared_ptr<const worker::Dataset> dataset,
                          worker::OpenDataset(config, spec, worker::Split::kTrain));
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<ReplayTables> tables,
                          ReplayTables::Create(config, spec, job, options.servers));
  ReplayServers servers({.config = &config,
                         .model = &spec,
                         .job = &job,
                         .run = &run,
                         .tables = tables.get(),
                         .servers = options.servers,
                         .until_version = options.until_step,
                         .clock = options.clock,
                         .same_config = options.overrides.empty(),
                         .progress = options.progress});
  RUBATO_RETURN_IF_ERROR(TrainAll({.config = &config,
                                   .spec = &spec,
                                   .job = &job,
                                   .run = &run,
                                   .servers = &servers,
                                   .dataset = std::move(dataset),
                                   .factory = options.factory,
                                   .clock = options.clock},
                                  options));
  RUBATO_RETURN_IF_ERROR(WriteWeights(options, config, run, &servers));
  ReplayReport report;
  report.members = static_cast<int64_t>(run.members.size());
  for (const RecordedRun::Member& member : run.members) report.steps += static_cast<int64_t>(member.steps.size());
  report.chunks = job.chunks_size();
  for (const std::vector<RecordedRun::Update>& updates : run.updates) {
    report.updates += static_cast<int64_t>(updates.size());
  }
  if (options.overrides.empty() && !options.until_step.has_value()) {
    RUBATO_ASSIGN_OR_RETURN(report.comparison, CompareWithRun(options, config));
  }
  return report;
}

}  // namespace rubato
