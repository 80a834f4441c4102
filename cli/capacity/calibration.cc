#include "cli/capacity/calibration.h"

#include <algorithm>
#include <array>
#include <map>

#include "absl/strings/str_cat.h"
#include "cli/capacity/least_squares.h"
#include "common/status.h"

namespace rubato::capacity {
namespace {

using Coefficients = std::array<double, LeastSquares::kCoefficients>;

LinearCost CostOf(const LeastSquares& fit) {
  const Coefficients c = fit.Solve();
  return {.fixed = c[0], .per_chunk = c[1], .per_byte = c[2]};
}

// A batch's chunks and bytes of float32.
std::array<double, 2> SizeOf(const worker::ChunkBatch& batch) {
  return {static_cast<double>(batch.chunks.size()), static_cast<double>(batch.bytes)};
}

// A message has two ends, and an exchange two messages.
LinearCost FitTransport(const CalibrationRun& run) {
  LeastSquares fit;
  for (const RecordedTransport& one : run.transports)
    fit.Add({0, static_cast<double>(one.bytes)}, ToSeconds(one.length));
  const Coefficients c = fit.Solve();
  return {.fixed = c[0] / 4, .per_byte = c[2] / 2};
}

void FitRequests(const CalibrationRun& run, ServerCosts* costs) {
  std::map<uint32_t, const worker::ChunkBatch*> batch_of_chunk;
  for (const worker::ChunkBatch& batch : run.layout.batching.batches) batch_of_chunk[batch.chunks.front()] = &batch;
  LeastSquares receive, rules, answer;
  for (const RecordedServer& server : run.servers) {
    for (const RecordedRequest& request : server.requests) {
      const auto batch = batch_of_chunk.find(request.first_chunk);
      if (batch == batch_of_chunk.end()) continue;
      const std::array<double, 2> size = SizeOf(*batch->second);
      receive.Add(size, ToSeconds(request.taken - request.begun));
      answer.Add(size, ToSeconds(request.sent - request.answered));
      if (request.at_once) rules.Add(size, ToSeconds(request.answered - request.taken - request.others));
    }
  }
  costs->receive = CostOf(receive);
  costs->rules = CostOf(rules);
  costs->answer = CostOf(answer);
}

// Of all runs: they differ in how many contributions an update has.
void FitUpdates(const std::vector<CalibrationRun>& runs, ServerCosts* costs) {
  LeastSquares update, wake;
  for (const CalibrationRun& run : runs) {
    for (const RecordedServer& server : run.servers) {
      for (const RecordedUpdate& one : server.updates) {
        if (one.chunk >= run.layout.chunk_bytes.size()) continue;
        const auto bytes = static_cast<double>(run.layout.chunk_bytes[one.chunk]);
        update.Add({bytes * static_cast<double>(one.contributions), bytes}, ToSeconds(one.length));
      }
      for (const RecordedWake& one : server.wakes) wake.Add({0, 0}, ToSeconds(one.length));
    }
  }
  const Coefficients c = update.Solve();
  costs->update = {.fixed = c[0], .per_byte = c[2], .per_contributed_byte = c[1]};
  costs->wake = CostOf(wake);
}

absl::Status CheckSameJob(const CalibrationRun& run, const v1::JobConfig& planned) {
  const v1::JobConfig& config = run.layout.config;
  const auto differs = [&run](absl::string_view field, const auto& value, const auto& needed) {
    return absl::InvalidArgumentError(absl::StrCat("--calibrate: ", run.directory, " has ", field, " ", value,
                                                   "; needed: ", needed, ", as the job that is planned"));
  };
  if (config.model().SerializeAsString() != planned.model().SerializeAsString()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--calibrate: ", run.directory, " has another model than the job that is planned; needed: the same"));
  }
  if (config.training().batch_size() != planned.training().batch_size()) {
    return differs("training.batch_size", config.training().batch_size(), planned.training().batch_size());
  }
  if (config.consistency().sync_every() != planned.consistency().sync_every()) {
    return differs("consistency.sync_every", config.consistency().sync_every(), planned.consistency().sync_every());
  }
  return absl::OkStatus();
}

void AddNotes(const CalibrationRun& run, const v1::JobConfig& planned, std::vector<std::string>* notes) {
  const v1::JobConfig& config = run.layout.config;
  const auto note = [&](absl::string_view what) { notes->push_back(absl::StrCat(run.directory, " ", what)); };
  if (config.compression().SerializeAsString() != planned.compression().SerializeAsString()) {
    note("has another compression: the bytes on links are the plan's, the time to encode and decode is the run's");
  }
  if (config.optimizer().algorithm() != planned.optimizer().algorithm()) {
    note("has another optimizer.algorithm: updates take the run's time");
  }
  if (config.cluster().update_log() != planned.cluster().update_log()) {
    note(absl::StrCat("was made ", config.cluster().update_log() ? "with" : "without",
                      " cluster.update_log: servers take the run's time"));
  }
  if (run.dropped_spans > 0) note(absl::StrCat("has traces that lack ", run.dropped_spans, " spans"));
}

}  // namespace

absl::StatusOr<Calibration> Calibrate(const std::vector<CalibrationRun>& runs, const v1::JobConfig& planned) {
  if (runs.empty()) return absl::InvalidArgumentError("--calibrate is required: the directory of a traced run");
  Calibration calibration;
  for (const CalibrationRun& run : runs) {
    RUBATO_RETURN_IF_ERROR(CheckSameJob(run, planned));
    AddNotes(run, planned, &calibration.notes);
  }
  const CalibrationRun& fewest = *std::min_element(
      runs.begin(), runs.end(), [](const auto& a, const auto& b) { return a.workers() < b.workers(); });
  calibration.costs.steps = fewest.steps;
  calibration.costs.transport = FitTransport(fewest);
  FitRequests(fewest, &calibration.costs.server);
  FitUpdates(runs, &calibration.costs.server);
  const bool reduced = std::any_of(runs.begin(), runs.end(), [](const CalibrationRun& run) {
    return run.workers() > 1 && run.layout.config.consistency().mode() == v1::SYNC;
  });
  if (!reduced && planned.consistency().mode() == v1::SYNC && planned.cluster().workers() > 1) {
    calibration.notes.push_back(
        "No run has several workers in SYNC: that an update takes as long for each contribution is a guess");
  }
  return calibration;
}

}  // namespace rubato::capacity
