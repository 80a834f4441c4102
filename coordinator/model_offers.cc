#include "coordinator/model_offers.h"

#include "absl/strings/str_cat.h"
#include "common/config/client_job.h"
#include "common/status.h"
#include "common/task.h"

namespace rubato::coordinator {
namespace {

constexpr double kLongestWaitSeconds = 60;

v1::OfferModelReply OfferReply(const v1::JobConfig& config) {
  v1::OfferModelReply reply;
  *reply.mutable_config() = config;
  return reply;
}

v1::GetJobConfigReply ConfigReply(const v1::JobConfig& config) {
  v1::GetJobConfigReply reply;
  *reply.mutable_config() = config;
  return reply;
}

absl::Status CheckVersion(const v1::OfferModelRequest& offer) {
  if (offer.protocol_version() == kProtocolVersion) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(TaskName(offer.task()), " speaks protocol version ",
                                                 offer.protocol_version(), ", the coordinator ", kProtocolVersion,
                                                 "; start all tasks from the same release"));
}

}  // namespace

ModelOffers::ModelOffers(v1::JobConfig config, const Clock* clock) : clock_(clock), config_(std::move(config)) {}

absl::Status ModelOffers::TakeOffer(const v1::OfferModelRequest& offer) {
  if (!ended_.ok()) return ended_;
  if (!IsClientJob(config_)) {
    return absl::FailedPreconditionError(
        "the job's config has a model of its own; a client's job has a config without model, data and optimizer");
  }
  RUBATO_RETURN_IF_ERROR(CheckVersion(offer));
  if (AwaitsModel(config_)) {
    absl::StatusOr<v1::JobConfig> complete = CompleteJobConfig(config_, offer);
    if (!complete.ok()) return Annotate(complete.status(), TaskName(offer.task()));
    config_ = *std::move(complete);
    changed_.NotifyAll();
    return absl::OkStatus();
  }
  const std::string differences = FirstDifferences(config_, offer);
  if (differences.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the model of ", TaskName(offer.task()), " is another one than the job's:\n", differences));
}

void ModelOffers::Offer(const v1::OfferModelRequest& offer, OfferDone done) {
  absl::StatusOr<v1::OfferModelReply> answer = v1::OfferModelReply();
  std::function<void(const std::string&)> disagree;
  absl::StatusOr<v1::GetJobConfigReply> completed = absl::UnavailableError("");
  {
    MutexLock lock(mu_);
    const bool awaited = AwaitsModel(config_);
    const bool clients = IsClientJob(config_);
    const absl::Status taken = TakeOffer(offer);
    if (!taken.ok()) {
      answer = taken;
      if (!awaited && clients && ended_.ok() && absl::IsInvalidArgument(taken)) {
        disagreement_ = std::string(taken.message());
        disagree = disagree_;
      }
    } else if (!begun_) {
      offers_.push_back(std::move(done));
      done = nullptr;
    } else {
      answer = OfferReply(config_);
    }
    if (awaited && !AwaitsModel(config_)) completed = ConfigReply(config_);
  }
  if (completed.ok()) AnswerConfigs(completed);
  if (disagree) disagree(std::string(answer.status().message()));
  if (done) done(std::move(answer));
}

void ModelOffers::GetConfig(const v1::GetJobConfigRequest& request, ConfigDone done) {
  absl::StatusOr<v1::GetJobConfigReply> answer = v1::GetJobConfigReply();
  const double seconds = request.timeout_seconds();
  if (!(seconds > 0 && seconds <= kLongestWaitSeconds)) {
    answer =
        absl::InvalidArgumentError(absl::StrCat("timeout_seconds: value ", seconds, "; allowed: above 0, up to 60"));
    return done(std::move(answer));
  }
  {
    MutexLock lock(mu_);
    if (!ended_.ok()) {
      answer = ended_;
    } else if (AwaitsModel(config_)) {
      configs_.push_back({clock_->Now() + absl::Seconds(seconds), std::move(done)});
      return;
    } else {
      answer = ConfigReply(config_);
    }
  }
  done(std::move(answer));
}

void ModelOffers::AnswerConfigs(const absl::StatusOr<v1::GetJobConfigReply>& answer) {
  std::vector<Waiting> waiting;
  {
    MutexLock lock(mu_);
    waiting.swap(configs_);
  }
  for (const Waiting& one : waiting) one.done(answer);
}

void ModelOffers::ExpireConfigs() {
  std::vector<Waiting> over;
  {
    MutexLock lock(mu_);
    const absl::Time now = clock_->Now();
    for (size_t i = 0; i < configs_.size();) {
      if (configs_[i].deadline > now) {
        ++i;
        continue;
      }
      over.push_back(std::move(configs_[i]));
      configs_.erase(configs_.begin() + static_cast<int64_t>(i));
    }
  }
  for (const Waiting& one : over) one.done(absl::UnavailableError("no client has offered the job's model yet"));
}

std::optional<v1::JobConfig> ModelOffers::Await(absl::Duration timeout) {
  ExpireConfigs();
  MutexLock lock(mu_);
  if (AwaitsModel(config_)) changed_.WaitFor(mu_, timeout);
  if (AwaitsModel(config_)) return std::nullopt;
  return config_;
}

void ModelOffers::Begin(std::function<void(const std::string&)> disagree) {
  std::vector<OfferDone> offers;
  std::string disagreement;
  v1::JobConfig config;
  {
    MutexLock lock(mu_);
    begun_ = true;
    disagree_ = disagree;
    offers.swap(offers_);
    disagreement = disagreement_;
    config = config_;
  }
  if (!disagreement.empty()) disagree(disagreement);
  for (const OfferDone& done : offers) done(OfferReply(config));
}

void ModelOffers::End(absl::Status why) {
  std::vector<OfferDone> offers;
  {
    MutexLock lock(mu_);
    ended_ = why;
    disagree_ = nullptr;
    offers.swap(offers_);
  }
  for (const OfferDone& done : offers) done(why);
  AnswerConfigs(why);
}

}  // namespace rubato::coordinator
