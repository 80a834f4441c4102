#include "cli/launch/status_line.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/proto_enum.h"
#include "common/task.h"

namespace rubato {
namespace {

// Of clients only what they tell is known: their data need not have epochs, and they need not report examples and loss.
std::vector<std::string> Measures(const v1::JobStatus& status) {
  const bool has_epochs = status.epochs_total() > 0;
  const auto is_told = [has_epochs](double value) { return has_epochs || value != 0; };
  std::vector<std::string> parts = {absl::StrCat("step ", status.step())};
  if (has_epochs) {
    parts.push_back(absl::StrFormat("epoch %.2f/%g", status.epoch(), status.epochs_total()));
  } else if (is_told(status.epoch())) {
    parts.push_back(absl::StrFormat("epoch %.2f", status.epoch()));
  }
  if (is_told(status.examples_per_second())) {
    parts.push_back(absl::StrFormat("%.0f ex/s", status.examples_per_second()));
  }
  if (is_told(status.training_loss())) parts.push_back(absl::StrFormat("loss %.4f", status.training_loss()));
  if (status.has_evaluation_accuracy()) {
    parts.push_back(absl::StrFormat("accuracy %.2f %%", status.evaluation_accuracy() * 100));
  } else if (status.has_evaluation_loss()) {
    parts.push_back(absl::StrFormat("held-out loss %.4f", status.evaluation_loss()));
  }
  if (status.has_evaluation_recall()) {
    parts.push_back(
        absl::StrFormat("recall@%d %.2f %%", status.evaluation_recall_at(), status.evaluation_recall() * 100));
  }
  if (status.has_evaluation_auc()) parts.push_back(absl::StrFormat("AUC %.4f", status.evaluation_auc()));
  if (status.has_evaluation_calibration()) {
    parts.push_back(absl::StrFormat("calibration %.2f", status.evaluation_calibration()));
  }
  if (status.has_evaluation_r2()) parts.push_back(absl::StrFormat("R2 %.4f", status.evaluation_r2()));
  if (status.has_plan()) parts.push_back(ModeName(status.plan().mode(), status.plan().staleness_bound()));
  parts.push_back(absl::StrFormat("staleness %.2f", status.mean_staleness()));
  parts.push_back(absl::StrFormat("waiting %.0f %%", status.waiting_share() * 100));
  return parts;
}

}  // namespace

std::string PhaseName(v1::JobStatus::Phase phase) {
  switch (phase) {
    case v1::JobStatus::STARTING:
      return "starting";
    case v1::JobStatus::TRAINING:
      return "training";
    case v1::JobStatus::FINISHING:
      return "finishing";
    case v1::JobStatus::DONE:
      return "done";
    case v1::JobStatus::FAILED:
      return "failed";
    case v1::JobStatus::PHASE_UNSPECIFIED:
      RUBATO_NO_VALUE_OF(v1::JobStatus_Phase_JobStatus_Phase) : break;
  }
  return absl::StrCat("unknown phase ", static_cast<int>(phase));
}

std::string FormatSeconds(double seconds) {
  // Also what a broken clock might say.
  if (!(seconds >= 0 && seconds < 1e9)) return "unknown";
  int64_t whole = std::llround(seconds);
  if (whole < 60) return absl::StrCat(whole, " s");
  if (whole < 3600) return absl::StrCat(whole / 60, " min ", whole % 60, " s");
  return absl::StrCat(whole / 3600, " h ", whole % 3600 / 60, " min");
}

std::string StatusLine(const v1::JobStatus& status) {
  std::vector<std::string> parts;
  if (status.phase() != v1::JobStatus::TRAINING) parts.push_back(PhaseName(status.phase()));
  if (status.phase() != v1::JobStatus::STARTING) {
    std::vector<std::string> measures = Measures(status);
    parts.insert(parts.end(), measures.begin(), measures.end());
  }
  if (status.phase() == v1::JobStatus::TRAINING && status.seconds_left() >= 0) {
    parts.push_back(absl::StrCat(FormatSeconds(status.seconds_left()), " left"));
  }
  if (status.announced_generation() != 0) parts.push_back("changing plan");
  if (!status.waiting_for().empty()) parts.push_back(absl::StrCat("waits for ", status.waiting_for()));
  if (!status.error().empty()) parts.push_back(status.error());
  return absl::StrJoin(parts, "  ");
}

std::string CutToColumns(const std::string& text, size_t columns) {
  size_t used = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    bool starts_character = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    if (starts_character && used++ == columns) return text.substr(0, i);
  }
  return text;
}

}  // namespace rubato
