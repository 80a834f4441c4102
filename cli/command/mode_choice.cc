#include "cli/command/mode_choice.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/config/awaited_model.h"
#include "common/config/fingerprint.h"
#include "common/config/limits.h"
#include "common/config/load.h"
#include "common/status.h"

namespace rubato {
std::string ModeChoice::Name() const {
  if (mode == v1::SYNC) return "sync";
  return mode == v1::SSP ? absl::StrCat("ssp:", staleness_bound) : "async";
}

std::string ModeChoice::DirectoryName() const {
  return mode == v1::SSP ? absl::StrCat("ssp", staleness_bound) : Name();
}

absl::StatusOr<ModeChoice> ParseMode(const std::string& text, const std::string& option) {
  if (text == "sync") return ModeChoice{v1::SYNC, 0};
  if (text == "async") return ModeChoice{v1::ASYNC, 0};
  absl::string_view bound = text;
  ModeChoice choice{v1::SSP, 0};
  if (absl::ConsumePrefix(&bound, "ssp:") && absl::SimpleAtoi(bound, &choice.staleness_bound) &&
      choice.staleness_bound >= 1 && choice.staleness_bound <= kMaxStalenessBound) {
    return choice;
  }
  return absl::InvalidArgumentError(absl::StrCat(option, ": value \"", text,
                                                 "\"; allowed: sync, async, or ssp:N with N from 1 to ",
                                                 kMaxStalenessBound, " steps"));
}

absl::StatusOr<std::vector<ModeChoice>> ParseModes(const std::vector<std::string>& texts, const std::string& option) {
  std::vector<ModeChoice> modes;
  for (const std::string& text : texts) {
    RUBATO_ASSIGN_OR_RETURN(ModeChoice mode, ParseMode(text, option));
    for (const ModeChoice& other : modes) {
      if (other.Name() == mode.Name()) {
        return absl::InvalidArgumentError(absl::StrCat(option, ": ", mode.Name(), " is given twice"));
      }
    }
    modes.push_back(mode);
  }
  if (modes.empty()) return absl::InvalidArgumentError(absl::StrCat(option, ": no mode is given"));
  return modes;
}

ModeChoice ModeOfConfig(const v1::JobConfig& config) {
  return {config.consistency().mode(), config.consistency().staleness_bound()};
}

absl::StatusOr<v1::JobConfig> ConfigInMode(const v1::JobConfig& config, const ModeChoice& mode) {
  v1::JobConfig changed = config;
  v1::ConsistencyConfig* consistency = changed.mutable_consistency();
  consistency->set_mode(mode.mode);
  consistency->set_staleness_bound(mode.staleness_bound);
  consistency->clear_schedule();
  consistency->clear_policy();
  consistency->clear_policy_pace();
  consistency->clear_quorum_policy();
  consistency->clear_sync_then_async();
  if (mode.mode != v1::SYNC) consistency->clear_quorum();
  return ParseJobConfig(ConfigText(changed), absl::StrCat("the config in mode ", mode.Name()), {},
                        {.may_await_model = AwaitsModel(config)});
}

}  // namespace rubato
