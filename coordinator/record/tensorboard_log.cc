#include "coordinator/record/tensorboard_log.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/config/fingerprint.h"
#include "common/status.h"
#include "common/task.h"

namespace rubato::coordinator {
namespace {

constexpr int kMaxCounts = 256;

void AddScalar(const std::string& tag, double value, tensorflow::Event* event) {
  tensorflow::Summary::Value* entry = event->mutable_summary()->add_value();
  entry->set_tag(tag);
  entry->set_simple_value(static_cast<float>(value));
}

// The loss of a line that has one.
template <typename Line>
void AddLoss(const std::string& tag, const Line& line, tensorflow::Event* event) {
  if (line.has_loss()) AddScalar(tag, line.loss(), event);
  if (line.diverged()) AddScalar(tag, std::numeric_limits<double>::quiet_NaN(), event);
}

// TensorBoard shows it as Markdown.
void AddText(const std::string& tag, const std::string& text, tensorflow::Event* event) {
  tensorflow::Summary::Value* entry = event->mutable_summary()->add_value();
  entry->set_tag(tag);
  entry->mutable_metadata()->mutable_plugin_data()->set_plugin_name("text");
  entry->mutable_tensor()->set_dtype(tensorflow::DT_STRING);
  entry->mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(1);
  entry->mutable_tensor()->add_string_val(text);
}

void AddProgress(const v1::ProgressLine& line, tensorflow::Event* event) {
  event->set_step(static_cast<int64_t>(line.step()));
  AddLoss("training/loss", line, event);
  if (line.has_accuracy()) AddScalar("training/accuracy", line.accuracy(), event);
  AddScalar("training/learning_rate", line.learning_rate(), event);
  AddScalar("training/examples_per_second", line.examples_per_second(), event);
  AddScalar("training/epoch", line.epoch(), event);
  if (line.has_gradient_norm()) AddScalar("training/gradient_norm", line.gradient_norm(), event);
  if (line.has_gradient_noise_scale()) AddScalar("training/gradient_noise_scale", line.gradient_noise_scale(), event);
  if (line.has_lasting_share()) AddScalar("training/lasting_share", line.lasting_share(), event);
  AddScalar("consistency/generation", line.generation(), event);
  AddScalar("consistency/staleness_mean", line.staleness_mean(), event);
  AddScalar("consistency/waiting_share", line.waiting_share(), event);
  AddScalar("wire/sent_bytes", line.sent_bytes(), event);
  AddScalar("wire/received_bytes", line.received_bytes(), event);
}

void AddEvaluation(const v1::EvaluationLine& line, tensorflow::Event* event) {
  event->set_step(static_cast<int64_t>(line.step()));
  AddLoss("evaluation/loss", line, event);
  if (line.has_accuracy()) AddScalar("evaluation/accuracy", line.accuracy(), event);
  if (line.has_r2()) AddScalar("evaluation/r2", line.r2(), event);
  if (line.has_auc()) AddScalar("evaluation/auc", line.auc(), event);
  if (line.has_calibration()) AddScalar("evaluation/calibration", line.calibration(), event);
  if (line.has_recall()) AddScalar("evaluation/recall", line.recall(), event);
}

void AddPlan(const v1::PlanLine& line, tensorflow::Event* event) {
  event->set_step(static_cast<int64_t>(line.first_step()));
  const std::string mode = ModeName(line.mode(), static_cast<int64_t>(line.staleness_bound()));
  AddText("consistency/plan",
          absl::StrCat("plan ", line.generation(), ": **", mode, "** from step ", event->step(),
                       "; members: ", absl::StrJoin(line.members(), ", "), "; ", line.reason(), "; longest stall ",
                       line.stall_seconds(), " s"),
          event);
  AddScalar("consistency/stall_seconds", line.stall_seconds(), event);
}

void AddMember(const v1::MemberLine& line, tensorflow::Event* event) {
  const std::string what = absl::AsciiStrToLower(v1::MemberLine::Event_Name(line.event()));
  AddText("tasks/members", absl::StrCat(line.task(), " ", what, line.reason().empty() ? "" : ": ", line.reason()),
          event);
}

bool IsSound(const v1::TensorStatistics& tensor) {
  const bool named = !tensor.tensor().empty() && v1::TensorStatistics::Kind_IsValid(tensor.kind()) &&
                     tensor.kind() != v1::TensorStatistics::KIND_UNSPECIFIED;
  const bool finite = std::isfinite(tensor.min()) && std::isfinite(tensor.max()) && std::isfinite(tensor.sum()) &&
                      std::isfinite(tensor.sum_squares());
  return named && finite && tensor.min() <= tensor.max() && tensor.counts_size() <= kMaxCounts;
}

void AddHistogram(const std::string& tag, const v1::TensorStatistics& tensor, tensorflow::Event* event) {
  tensorflow::Summary::Value* entry = event->mutable_summary()->add_value();
  entry->set_tag(tag);
  tensorflow::HistogramProto* histogram = entry->mutable_histo();
  histogram->set_min(tensor.min());
  histogram->set_max(tensor.max());
  histogram->set_num(static_cast<double>(tensor.elements() - tensor.non_finite()));
  histogram->set_sum(tensor.sum());
  histogram->set_sum_squares(tensor.sum_squares());
  const int parts = tensor.counts_size();
  for (int i = 0; i < parts; ++i) {
    const double share = static_cast<double>(i + 1) / parts;
    histogram->add_bucket_limit(i + 1 == parts ? tensor.max() : tensor.min() + share * (tensor.max() - tensor.min()));
    histogram->add_bucket(static_cast<double>(tensor.counts(i)));
  }
}

}  // namespace

tensorflow::Event EventOfLine(const v1::RunRecordLine& line, int64_t last_step) {
  tensorflow::Event event;
  event.set_step(last_step);
  switch (line.line_case()) {
    case v1::RunRecordLine::kProgress:
      AddProgress(line.progress(), &event);
      break;
    case v1::RunRecordLine::kEvaluation:
      AddEvaluation(line.evaluation(), &event);
      break;
    case v1::RunRecordLine::kPlan:
      AddPlan(line.plan(), &event);
      break;
    case v1::RunRecordLine::kMember:
      AddMember(line.member(), &event);
      break;
    case v1::RunRecordLine::kEnd:
      AddText("job/end", line.end().ok() ? "done" : absl::StrCat("failed: ", line.end().error()), &event);
      break;
    case v1::RunRecordLine::kCheckpoint:
      event.set_step(static_cast<int64_t>(line.checkpoint().step()));
      AddText("job/checkpoint",
              absl::StrCat("**", line.checkpoint().name(), "**: ", line.checkpoint().bytes() * 1e-6, " MB in ",
                           line.checkpoint().seconds(), " s"),
              &event);
      break;
    case v1::RunRecordLine::kRollback:
      event.set_step(static_cast<int64_t>(line.rollback().step()));
      AddText("job/rollback",
              absl::StrCat("back to step ", event.step(), " in term ", line.rollback().term(), ": ",
                           line.rollback().reason()),
              &event);
      break;
    case v1::RunRecordLine::kRequest:
    case v1::RunRecordLine::kStart:
    case v1::RunRecordLine::LINE_NOT_SET:
      break;
  }
  return event;
}

tensorflow::Event EventOfTensors(const v1::TensorReport& report) {
  tensorflow::Event event;
  event.set_step(report.step());
  for (const v1::TensorStatistics& tensor : report.tensors()) {
    if (!IsSound(tensor)) continue;
    const std::string tag =
        absl::StrCat(tensor.kind() == v1::TensorStatistics::WEIGHTS ? "weights/" : "gradients/", tensor.tensor());
    AddScalar(absl::StrCat(tag, "/norm"), std::sqrt(tensor.sum_squares()), &event);
    AddHistogram(tag, tensor, &event);
  }
  return event;
}

absl::StatusOr<std::unique_ptr<TensorboardLog>> TensorboardLog::Open(const v1::JobConfig& config, absl::Time now) {
  const std::string directory = absl::StrCat(config.run_directory(), "/tensorboard");
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<EventFileWriter> writer, EventFileWriter::Create(directory, now));
  auto log = absl::WrapUnique(new TensorboardLog(std::move(writer)));
  tensorflow::Event event;
  // Indented, it is shown as it is.
  AddText("job/config", absl::StrCat("    ", absl::StrReplaceAll(ConfigText(config), {{"\n", "\n    "}})), &event);
  RUBATO_RETURN_IF_ERROR(log->Append(now, std::move(event)));
  return log;
}

absl::Status TensorboardLog::OnLine(absl::Time now, const v1::RunRecordLine& line) {
  tensorflow::Event event = EventOfLine(line, last_step_);
  last_step_ = line.has_rollback() ? event.step() : std::max(last_step_, event.step());
  return Append(now, std::move(event));
}

absl::Status TensorboardLog::OnTensors(absl::Time now, const v1::TensorReport& report) {
  return Append(now, EventOfTensors(report));
}

absl::Status TensorboardLog::Append(absl::Time now, tensorflow::Event event) {
  if (!event.has_summary()) return absl::OkStatus();
  event.set_wall_time(absl::ToDoubleSeconds(now - absl::UnixEpoch()));
  return writer_->Append(event);
}

}  // namespace rubato::coordinator
