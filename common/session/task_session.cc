#include "common/session/task_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/config/checkpoint_directory.h"
#include "common/config/fingerprint.h"
#include "common/proto_enum.h"
#include "common/storage/file.h"
#include "common/task.h"

namespace rubato {
namespace {

// Of a checkpoint that the coordinator names as "checkpoints/<name>".
std::string PathOf(const std::string& checkpoint, const v1::JobConfig& config) {
  return JoinPath(CheckpointDirectory(config), checkpoint.substr(checkpoint.rfind('/') + 1));
}

}  // namespace

Session::Options TaskSessionOptions(const v1::JobConfig& config, const std::string& coordinator,
                                    std::shared_ptr<const TaskSecurity> security, const v1::TaskId& task,
                                    const Clock* clock, Logger* log) {
  Session::Options options;
  options.coordinator = coordinator;
  options.security = std::move(security);
  options.task = task;
  options.registration = DescribeProcess();
  options.registration.set_config_fingerprint(ConfigFingerprint(config));
  options.give_up_after = absl::Seconds(config.cluster().start_timeout_seconds());
  options.give_up_after_registered =
      absl::Seconds(std::max(config.cluster().start_timeout_seconds(), config.cluster().wait_timeout_seconds()));
  options.clock = clock;
  options.log = log;
  return options;
}

absl::Status HeedStop(const v1::Stop& stop, const v1::JobConfig& config, Logger* log) {
  const std::string why = absl::StrCat("the coordinator ended the job: ", stop.error());
  switch (stop.kind()) {
    case v1::Stop::DONE:
      return absl::OkStatus();
    case v1::Stop::STOPPED:
      log->Info(
          absl::StrCat(why, stop.checkpoint().empty()
                                ? "; no checkpoint was written"
                                : absl::StrCat("; to go on from its weights, start a job with training.start_from ",
                                               PathOf(stop.checkpoint(), config))));
      return absl::OkStatus();
    case v1::Stop::FAILED:
    case v1::Stop::KIND_UNSPECIFIED:
      RUBATO_NO_VALUE_OF(v1::Stop_Kind_Stop_Kind) : break;
  }
  return absl::AbortedError(why);
}

}  // namespace rubato
