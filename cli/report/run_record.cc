#include "cli/report/run_record.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace rubato {
namespace {

using Json = nlohmann::json;

// Reads fields of one JSON object and keeps the first error. A getter leaves `out` as it is on error.
class FieldReader {
 public:
  explicit FieldReader(const Json& object) : object_(object) {}

  void Get(const char* name, double* out) {
    const Json* value = Find(name);
    if (value == nullptr) return;
    if (!value->is_number()) return Fail(name, *value, "a number");
    *out = value->get<double>();
  }
  void Get(const char* name, int64_t* out) {
    const Json* value = Find(name);
    if (value == nullptr) return;
    if (!value->is_number_integer() || (value->is_number_unsigned() && value->get<uint64_t>() > INT64_MAX)) {
      return Fail(name, *value, "a whole number");
    }
    *out = value->get<int64_t>();
  }
  void Get(const char* name, uint64_t* out) {
    const Json* value = Find(name);
    if (value == nullptr) return;
    if (!value->is_number_unsigned()) return Fail(name, *value, "a whole number, not negative");
    *out = value->get<uint64_t>();
  }
  void Get(const char* name, std::string* out) {
    const Json* value = Find(name);
    if (value == nullptr) return;
    if (!value->is_string()) return Fail(name, *value, "a string");
    *out = value->get<std::string>();
  }
  void Get(const char* name, bool* out) {
    const Json* value = Find(name);
    if (value == nullptr) return;
    if (!value->is_boolean()) return Fail(name, *value, "true or false");
    *out = value->get<bool>();
  }
  // A measured value: null, or absent, where the job has none.
  void Get(const char* name, std::optional<double>* out) {
    auto found = object_.find(name);
    if (found == object_.end() || found->is_null()) return;
    if (!found->is_number()) return Fail(name, *found, "a number or null");
    *out = found->get<double>();
  }
  void Get(const char* name, std::vector<int64_t>* out) {
    const Json* value = Find(name);
    if (value == nullptr) return;
    if (!value->is_array()) return Fail(name, *value, "a list of whole numbers");
    std::vector<int64_t> numbers;
    for (const Json& element : *value) {
      if (!element.is_number_integer()) return Fail(name, element, "a list of whole numbers");
      numbers.push_back(element.get<int64_t>());
    }
    *out = std::move(numbers);
  }
  void Get(const char* name, std::vector<WorkerTotals>* out);

  bool Has(const char* name) const { return object_.contains(name); }

  const absl::Status& status() const { return status_; }

 private:
  const Json* Find(const char* name) {
    auto found = object_.find(name);
    if (found != object_.end()) return &*found;
    if (status_.ok()) status_ = absl::InvalidArgumentError(absl::StrCat("field ", name, ": missing"));
    return nullptr;
  }
  void Fail(absl::string_view name, const Json& value, absl::string_view allowed) {
    if (!status_.ok()) return;
    std::string found = value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 60);
    status_ = absl::InvalidArgumentError(absl::StrCat("field ", name, ": value ", found, "; allowed: ", allowed));
  }

  const Json& object_;
  absl::Status status_;
};

void FieldReader::Get(const char* name, std::vector<WorkerTotals>* out) {
  const Json* value = Find(name);
  if (value == nullptr) return;
  if (!value->is_array()) return Fail(name, *value, "a list of objects");
  for (const Json& element : *value) {
    if (!element.is_object()) return Fail(name, element, "a list of objects");
    FieldReader reader(element);
    WorkerTotals worker;
    reader.Get("index", &worker.index);
    reader.Get("step", &worker.step);
    reader.Get("examples", &worker.examples);
    reader.Get("data_seconds", &worker.data_seconds);
    reader.Get("compute_seconds", &worker.compute_seconds);
    reader.Get("push_seconds", &worker.push_seconds);
    reader.Get("pull_wait_seconds", &worker.pull_wait_seconds);
    if (!reader.status().ok() && status_.ok()) status_ = Annotate(reader.status(), name);
    out->push_back(worker);
  }
}

StartLine ReadStart(FieldReader& reader) {
  StartLine line;
  reader.Get("job", &line.job);
  reader.Get("mode", &line.mode);
  reader.Get("staleness_bound", &line.staleness_bound);
  reader.Get("workers", &line.workers);
  reader.Get("servers", &line.servers);
  reader.Get("seed", &line.seed);
  reader.Get("batch_size", &line.batch_size);
  reader.Get("train_examples", &line.train_examples);
  reader.Get("epochs", &line.epochs);
  reader.Get("target_accuracy", &line.target_accuracy);
  return line;
}

ProgressLine ReadProgress(FieldReader& reader) {
  ProgressLine line;
  reader.Get("t", &line.t);
  reader.Get("step", &line.step);
  reader.Get("epoch", &line.epoch);
  reader.Get("examples", &line.examples);
  reader.Get("examples_per_second", &line.examples_per_second);
  reader.Get("loss", &line.loss);
  reader.Get("accuracy", &line.accuracy);
  reader.Get("mode", &line.mode);
  reader.Get("staleness_mean", &line.staleness_mean);
  reader.Get("staleness_counts", &line.staleness_counts);
  reader.Get("waiting_share", &line.waiting_share);
  reader.Get("sent_bytes", &line.sent_bytes);
  reader.Get("received_bytes", &line.received_bytes);
  reader.Get("workers", &line.workers);
  return line;
}

EvaluationLine ReadEvaluation(FieldReader& reader) {
  EvaluationLine line;
  reader.Get("t", &line.t);
  reader.Get("step", &line.step);
  reader.Get("epoch", &line.epoch);
  reader.Get("loss", &line.loss);
  reader.Get("accuracy", &line.accuracy);
  reader.Get("final", &line.final);
  return line;
}

PlanLine ReadPlan(FieldReader& reader) {
  PlanLine line;
  reader.Get("t", &line.t);
  reader.Get("generation", &line.generation);
  reader.Get("mode", &line.mode);
  reader.Get("staleness_bound", &line.staleness_bound);
  reader.Get("first_step", &line.first_step);
  reader.Get("members", &line.members);
  reader.Get("reason", &line.reason);
  reader.Get("round_trip_seconds", &line.round_trip_seconds);
  reader.Get("stall_seconds", &line.stall_seconds);
  reader.Get("slowest_step_seconds", &line.slowest_step_seconds);
  return line;
}

MemberLine ReadMember(FieldReader& reader) {
  MemberLine line;
  reader.Get("t", &line.t);
  reader.Get("task", &line.task);
  reader.Get("event", &line.event);
  reader.Get("reason", &line.reason);
  return line;
}

EndLine ReadEnd(FieldReader& reader) {
  EndLine line;
  reader.Get("t", &line.t);
  reader.Get("ok", &line.ok);
  reader.Get("error", &line.error);
  reader.Get("examples", &line.examples);
  reader.Get("examples_per_second", &line.examples_per_second);
  reader.Get("non_finite", &line.non_finite);
  // Not in records of versions before FP16.
  if (reader.Has("overflows")) reader.Get("overflows", &line.overflows);
  return line;
}

absl::Status AddLine(const Json& object, RunRecord* record) {
  if (!object.is_object()) return absl::InvalidArgumentError("not a JSON object");
  FieldReader reader(object);
  std::string kind;
  reader.Get("kind", &kind);
  if (kind == "start") {
    record->start = ReadStart(reader);
  } else if (kind == "progress") {
    record->progress.push_back(ReadProgress(reader));
  } else if (kind == "evaluation") {
    record->evaluations.push_back(ReadEvaluation(reader));
  } else if (kind == "plan") {
    record->plans.push_back(ReadPlan(reader));
  } else if (kind == "member") {
    record->members.push_back(ReadMember(reader));
  } else if (kind == "end") {
    record->end = ReadEnd(reader);
  }
  return reader.status();
}

}  // namespace

absl::StatusOr<RunRecord> ParseRunRecord(absl::string_view text, const std::string& file) {
  RunRecord record;
  int64_t number = 0;
  while (!text.empty()) {
    ++number;
    size_t newline = text.find('\n');
    bool last = newline == absl::string_view::npos;
    absl::string_view line = text.substr(0, newline);
    text.remove_prefix(last ? text.size() : newline + 1);
    Json object = Json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
    if (object.is_discarded() && last) break;
    absl::Status status =
        object.is_discarded() ? absl::InvalidArgumentError("not a line of JSON") : AddLine(object, &record);
    RUBATO_RETURN_IF_ERROR(Annotate(status, absl::StrCat(file, ":", number)));
  }
  return record;
}

absl::StatusOr<RunRecord> ReadRunRecord(const std::string& run_directory) {
  std::string path = absl::StrCat(run_directory, "/metrics.jsonl");
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::NotFoundError(
        absl::StrCat(path, ": ", std::strerror(errno), ". Is ", run_directory, " the directory of a run?"));
  }
  std::stringstream text;
  text << file.rdbuf();
  return ParseRunRecord(text.str(), path);
}

}  // namespace rubato
