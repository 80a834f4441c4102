#include "absl/strings/str_cat.h"
#include "common/config/awaited_model.h"
#include "common/config/validate_parts.h"

namespace rubato {

void ValidateClientJob(const v1::JobConfig& config, ErrorList* errors) {
  constexpr char kWhere[] = " in a client's job (model.manifest, or no model)";
  const auto check = [&](absl::string_view path, bool good, absl::string_view value, absl::string_view allowed) {
    if (!good) errors->Add(path, value, absl::StrCat(allowed, kWhere));
  };
  if (!AwaitsModel(config)) check("data", config.data().has_client(), "without client", "data.client");
  const uint32_t evaluators = config.cluster().evaluators();
  check("cluster.evaluators", evaluators == 0, absl::StrCat(evaluators), "0");
  const int64_t sync_every = config.consistency().sync_every();
  check("consistency.sync_every", sync_every <= 1, absl::StrCat(sync_every), "1");
  for (int i = 0; i < config.consistency().schedule_size(); ++i) {
    const v1::ScheduledSwitch& entry = config.consistency().schedule(i);
    check(absl::StrCat("consistency.schedule[", i, "].sync_every"), !entry.has_sync_every(),
          absl::StrCat(entry.sync_every()), "absent");
  }
  check("consistency.compensation", !config.consistency().compensation().has_delayed_nesterov(), "delayed_nesterov",
        "another one, as clients' pushes say how they are applied,");
  const double clip = config.training().clip_norm();
  check("training.clip_norm", clip == 0, NumberText(clip), "0, as clients clip themselves,");
}

}  // namespace rubato
