#ifndef RUBATO_COORDINATOR_MODEL_OFFERS_H_
#define RUBATO_COORDINATOR_MODEL_OFFERS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"

namespace rubato::coordinator {

// What clients say of the job's model (docs/decisions/0021), and who wants to know it: before the job begins, when the
// first client completes its config, and while it lasts. Thread-safe; nothing blocks but Await. Callbacks are called on
// any thread, without a lock.
//
//   ModelOffers offers(config, &clock);   // The service is told of offers and calls Offer and GetConfig.
//   while (!(complete = offers.Await(absl::Milliseconds(100)))) { ... signals, deadline ... }
//   ... the job's core is made of *complete ...
//   offers.Begin([&](const std::string& why) { ... fail the job ... });
class ModelOffers {
 public:
  using OfferDone = std::function<void(absl::StatusOr<v1::OfferModelReply>)>;
  using ConfigDone = std::function<void(absl::StatusOr<v1::GetJobConfigReply>)>;

  // A loaded config, which may await its model. `clock` outlives the offers.
  ModelOffers(v1::JobConfig config, const Clock* clock);
  // End must have been called, if anybody may still wait.
  ~ModelOffers() = default;

  // Answered with the job's config when the job has begun. InvalidArgument: the offer is no good, speaks another
  // version of the protocol, or differs from that of the first client: with the first differences. FailedPrecondition:
  // the job's model is none of clients.
  void Offer(const v1::OfferModelRequest& offer, OfferDone done);
  // The complete config. Unavailable: nobody has offered a model within the request's time. InvalidArgument: that is
  // out of range.
  void GetConfig(const v1::GetJobConfigRequest& request, ConfigDone done);

  // The complete config; nothing if there is none within `timeout`. Answers GetConfig whose time is over.
  std::optional<v1::JobConfig> Await(absl::Duration timeout);
  // The job has begun. `disagree` is called, now or later and perhaps more than once, if clients differ.
  void Begin(std::function<void(const std::string& why)> disagree);
  // There will be no job, or there is none any more: answers everybody with this, from now on too.
  void End(absl::Status why);

 private:
  struct Waiting {
    absl::Time deadline;
    ConfigDone done;
  };

  // Whether the offer is the config's.
  absl::Status TakeOffer(const v1::OfferModelRequest& offer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AnswerConfigs(const absl::StatusOr<v1::GetJobConfigReply>& answer);
  void ExpireConfigs();

  const Clock* const clock_;
  Mutex mu_;
  CondVar changed_;
  v1::JobConfig config_ ABSL_GUARDED_BY(mu_);
  bool begun_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status ended_ ABSL_GUARDED_BY(mu_);
  // How clients differ, as long as nobody could be told.
  std::string disagreement_ ABSL_GUARDED_BY(mu_);
  std::function<void(const std::string&)> disagree_ ABSL_GUARDED_BY(mu_);
  // Good offers, answered when the job has begun.
  std::vector<OfferDone> offers_ ABSL_GUARDED_BY(mu_);
  std::vector<Waiting> configs_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_MODEL_OFFERS_H_
