#include "cli/checkpoint/checkpoint_summary.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cli/report/text_table.h"
#include "common/status.h"
#include "common/storage/cut_record.h"
#include "common/storage/file.h"
#include "common/task.h"

namespace rubato {
namespace {

constexpr double kMiB = 1 << 20;

// The tensors of a checkpoint that is whole.
absl::StatusOr<std::vector<CheckpointSummary::Tensor>> ReadTensors(const std::string& directory) {
  RUBATO_ASSIGN_OR_RETURN(const std::vector<NamedTensor> read, ReadCheckpointTensors(directory));
  std::vector<CheckpointSummary::Tensor> tensors;
  for (const NamedTensor& tensor : read) {
    const auto bad =
        std::count_if(tensor.values.begin(), tensor.values.end(), [](float value) { return !std::isfinite(value); });
    tensors.push_back({.name = tensor.name,
                       .shape = tensor.shape,
                       .elements = static_cast<int64_t>(tensor.values.size()),
                       .not_finite = bad});
  }
  return tensors;
}

// What workers have done to a chunk or shard, and to all of them so far.
template <typename Record>
void AddWatermarks(const Record& record, std::map<uint32_t, std::vector<int64_t>>* steps) {
  std::map<uint32_t, int64_t> latest;
  for (const v1::Watermark& mark : record.watermarks()) {
    latest[mark.worker()] = std::max(latest[mark.worker()], mark.step() + 1);
  }
  for (const auto& [worker, step] : latest) (*steps)[worker].push_back(step);
}

void AddChunk(const v1::ChunkRecord& chunk, CheckpointSummary* summary) {
  for (CheckpointSummary::Tensor& tensor : summary->tensors) {
    if (tensor.name != chunk.tensor()) continue;
    const bool first = tensor.chunks++ == 0;
    tensor.version_min = first ? chunk.version() : std::min(tensor.version_min, chunk.version());
    tensor.version_max = std::max(tensor.version_max, chunk.version());
    tensor.slots = std::max<int64_t>(tensor.slots, chunk.slots_at_size());
  }
}

// Puts a checkpoint's tables together from the records of their shards.
class TableCounter {
 public:
  // DataLoss: shards disagree, or one is there twice.
  absl::Status Add(const CheckpointPart& part, const v1::ShardRecord& record) {
    Counted& counted = TableOf(record);
    CheckpointSummary::Table& table = counted.table;
    if (record.shards() != table.shards || record.dimension() != table.dimension || record.shard() >= table.shards) {
      return absl::DataLossError(absl::StrCat("table ", table.name, ": shard ", record.shard(), " is one of ",
                                              record.shards(), " with rows of ", record.dimension(),
                                              " weights, another says ", table.shards, " with ", table.dimension));
    }
    if (!counted.shards.insert(record.shard()).second) {
      return absl::DataLossError(absl::StrCat("table ", table.name, ": shard ", record.shard(), " is there twice"));
    }
    const bool first = counted.shards.size() == 1;
    table.version_min = first ? record.version() : std::min(table.version_min, record.version());
    table.version_max = std::max(table.version_max, record.version());
    table.rows += record.rows();
    const uint64_t row_bytes = sizeof(float) * record.row_floats();
    table.bytes += static_cast<uint64_t>(record.rows()) * (sizeof(uint64_t) + row_bytes);
    std::vector<float> weights(record.dimension());
    for (int64_t i = 0; i < record.rows(); ++i) {
      part.Copy(record.rows_at() + row_bytes * static_cast<uint64_t>(i), table.dimension, weights.data());
      table.not_finite +=
          std::count_if(weights.begin(), weights.end(), [](float value) { return !std::isfinite(value); });
    }
    counted.lowest_chunk = std::min(counted.lowest_chunk, record.chunk());
    return absl::OkStatus();
  }

  // In the order of their chunks. DataLoss names a table that lacks shards.
  absl::StatusOr<std::vector<CheckpointSummary::Table>> Finish() {
    std::sort(tables_.begin(), tables_.end(),
              [](const Counted& a, const Counted& b) { return a.lowest_chunk < b.lowest_chunk; });
    std::vector<CheckpointSummary::Table> tables;
    for (Counted& counted : tables_) {
      const auto there = static_cast<int64_t>(counted.shards.size());
      if (there < counted.table.shards) {
        return absl::DataLossError(absl::StrCat("table ", counted.table.name, ": ", there, " of its ",
                                                counted.table.shards, " shards are there"));
      }
      tables.push_back(std::move(counted.table));
    }
    return tables;
  }

 private:
  struct Counted {
    CheckpointSummary::Table table;
    std::set<uint32_t> shards;
    uint32_t lowest_chunk;
  };

  Counted& TableOf(const v1::ShardRecord& record) {
    for (Counted& counted : tables_) {
      if (counted.table.name == record.table()) return counted;
    }
    return tables_.emplace_back(Counted{.table = {.name = record.table(),
                                                  .algorithm = record.algorithm(),
                                                  .dimension = record.dimension(),
                                                  .shards = record.shards()},
                                        .shards = {},
                                        .lowest_chunk = record.chunk()});
  }

  std::vector<Counted> tables_;
};

// The record of its cut, if it is one.
absl::Status ReadCut(const std::string& directory, CheckpointSummary* summary) {
  absl::StatusOr<v1::CutRecord> record = ReadCutRecord(directory);
  if (absl::IsNotFound(record.status())) return absl::OkStatus();
  if (!record.ok()) return record.status();
  summary->cut = *std::move(record);
  summary->written = FileTime(JoinPath(directory, kCutRecordName)).value_or(absl::InfinitePast());
  return absl::OkStatus();
}

absl::Time TimeOfPart(const std::string& directory, uint32_t server) {
  const std::string manifest = absl::StrCat(CheckpointPartName(v1::TaskId::SERVER, server), ".manifest");
  return FileTime(JoinPath(directory, manifest)).value_or(absl::InfinitePast());
}

// Workers with a manifest there.
absl::StatusOr<std::vector<uint32_t>> WorkersOf(const std::string& directory) {
  std::vector<uint32_t> workers;
  RUBATO_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  for (const std::string& name : names) {
    absl::string_view middle = name;
    uint32_t worker = 0;
    if (absl::ConsumePrefix(&middle, "worker-") && absl::ConsumeSuffix(&middle, ".manifest") &&
        absl::SimpleAtoi(middle, &worker)) {
      workers.push_back(worker);
    }
  }
  return workers;
}

// Of a tensor or a table.
template <typename Kind>
std::string Versions(const Kind& kind) {
  if (kind.version_min == kind.version_max) return absl::StrCat(kind.version_max);
  return absl::StrCat(kind.version_min, " to ", kind.version_max);
}

std::string NotFinite(int64_t weights) { return weights == 0 ? "" : absl::StrCat(weights); }

// The steps and epochs that are in it, and its age.
std::string Position(const CheckpointSummary& summary, absl::Time now) {
  std::string text;
  if (summary.cut.has_value()) {
    text = absl::StrFormat(", step %d, epoch %.4g", summary.cut->plan().first_step(), summary.cut->epoch());
  }
  const absl::Duration age = std::max(absl::ZeroDuration(), absl::Trunc(now - summary.written, absl::Seconds(1)));
  return absl::StrCat(text, ", written ", absl::FormatDuration(age), " ago");
}

std::string FormatTensors(const CheckpointSummary& summary) {
  TextTable table({"tensor", "shape", "elements", "chunks", "updates", "optimizer slots", "not finite"});
  for (const CheckpointSummary::Tensor& tensor : summary.tensors) {
    table.AddRow({tensor.name, absl::StrCat("[", absl::StrJoin(tensor.shape, ", "), "]"), absl::StrCat(tensor.elements),
                  absl::StrCat(tensor.chunks), Versions(tensor), absl::StrCat(tensor.slots),
                  NotFinite(tensor.not_finite)});
  }
  return table.Format();
}

// Nothing if there are none.
std::string FormatTables(const CheckpointSummary& summary) {
  if (summary.tables.empty()) return "";
  TextTable table({"table", "dimension", "optimizer", "shards", "updates", "rows", "MiB", "not finite"});
  for (const CheckpointSummary::Table& of : summary.tables) {
    table.AddRow({of.name, absl::StrCat(of.dimension), v1::TableConfig::Algorithm_Name(of.algorithm),
                  absl::StrCat(of.shards), Versions(of), absl::StrCat(of.rows),
                  absl::StrFormat("%.1f", static_cast<double>(of.bytes) / kMiB), NotFinite(of.not_finite)});
  }
  return table.Format();
}

}  // namespace

absl::StatusOr<CheckpointSummary> SummarizeCheckpoint(const std::string& directory) {
  CheckpointSummary summary;
  RUBATO_ASSIGN_OR_RETURN(summary.tensors, ReadTensors(directory));
  RUBATO_ASSIGN_OR_RETURN(const std::vector<uint32_t> servers, ServersOfCheckpoint(directory));
  RUBATO_RETURN_IF_ERROR(ReadCut(directory, &summary));
  summary.servers = static_cast<uint32_t>(servers.size());
  std::map<uint32_t, std::vector<int64_t>> steps;
  TableCounter tables;
  for (uint32_t server : servers) {
    RUBATO_ASSIGN_OR_RETURN(const CheckpointPart part, ReadCheckpointPart(directory, v1::TaskId::SERVER, server));
    summary.job = part.manifest.job_name();
    summary.plan = part.manifest.plan();
    summary.server_bytes += part.manifest.data_bytes();
    summary.written = std::max(summary.written, TimeOfPart(directory, server));
    for (const v1::ChunkRecord& chunk : part.manifest.chunks()) {
      AddChunk(chunk, &summary);
      AddWatermarks(chunk, &steps);
    }
    for (const v1::ShardRecord& shard : part.manifest.shards()) {
      RUBATO_RETURN_IF_ERROR(Annotate(tables.Add(part, shard), directory));
      AddWatermarks(shard, &steps);
    }
  }
  absl::StatusOr<std::vector<CheckpointSummary::Table>> counted = tables.Finish();
  if (!counted.ok()) return Annotate(counted.status(), directory);
  summary.tables = *std::move(counted);
  for (const auto& [worker, done] : steps) summary.steps[worker] = *std::min_element(done.begin(), done.end());
  RUBATO_ASSIGN_OR_RETURN(const std::vector<uint32_t> workers, WorkersOf(directory));
  for (uint32_t worker : workers) {
    RUBATO_ASSIGN_OR_RETURN(const CheckpointPart part, ReadCheckpointPart(directory, v1::TaskId::WORKER, worker));
    // What another cut left there.
    if (summary.cut.has_value() && part.manifest.cut().id() != summary.cut->cut().id()) continue;
    summary.worker_bytes[worker] = part.manifest.data_bytes();
  }
  return summary;
}

std::string FormatCheckpoint(const std::string& name, const CheckpointSummary& summary, absl::Time now) {
  int64_t elements = 0;
  for (const CheckpointSummary::Tensor& tensor : summary.tensors) elements += tensor.elements;
  std::string text =
      absl::StrFormat("Checkpoint %s of job %s, plan %d, %s%s\n", name, summary.job, summary.plan.generation(),
                      summary.plan.generation() == 0 ? "before training"
                                                     : ModeName(summary.plan.mode(), summary.plan.staleness_bound()),
                      Position(summary, now));
  if (!summary.steps.empty()) {
    absl::StrAppend(&text, "Steps done: ",
                    absl::StrJoin(summary.steps, ", ",
                                  [](std::string* out, const std::pair<const uint32_t, int64_t>& step) {
                                    absl::StrAppend(out, "worker ", step.first, " ", step.second);
                                  }),
                    "\n");
  }
  absl::StrAppend(&text, FormatTensors(summary), FormatTables(summary));
  int64_t rows = 0;
  for (const CheckpointSummary::Table& table : summary.tables) rows += table.rows;
  absl::StrAppend(
      &text, elements, " elements", summary.tables.empty() ? "" : absl::StrCat(" and ", rows, " rows"),
      absl::StrFormat(" in %.1f MiB of %d servers", static_cast<double>(summary.server_bytes) / kMiB, summary.servers));
  for (const auto& [worker, bytes] : summary.worker_bytes) {
    absl::StrAppend(
        &text, absl::StrFormat("; worker %d has kept %.1f MiB of its own", worker, static_cast<double>(bytes) / kMiB));
  }
  return absl::StrCat(text, "; all checksums are right\n");
}

}  // namespace rubato
