#include "coordinator/worker_talk.h"

#include <gtest/gtest.h>

#include <optional>

namespace rubato::coordinator {
namespace {

class WorkerTalkTest : public testing::Test {
 protected:
  WorkerTalkTest() : talk_(AppendTo()) {}

  WorkerTalk::Append AppendTo() {
    return [this](const v1::JournalRecord& record) {
      if (!disk_.ok()) return disk_;
      journal_.push_back(record);
      return absl::OkStatus();
    };
  }
  absl::Status Put(const std::string& key, const std::string& value) {
    v1::PutValueRequest request;
    request.set_key(key);
    request.set_value(value);
    std::optional<absl::Status> answer;
    talk_.Put(request, [&](const absl::Status& status) { answer = status; });
    return answer.value_or(absl::UnknownError("no answer"));
  }
  void Get(const std::string& key, absl::Duration timeout, std::optional<absl::StatusOr<v1::GetValueReply>>* to) {
    Get(talk_, key, timeout, to);
  }
  void Get(WorkerTalk& talk, const std::string& key, absl::Duration timeout,
           std::optional<absl::StatusOr<v1::GetValueReply>>* to) {
    v1::GetValueRequest request;
    request.set_key(key);
    talk.Get(request, now_, now_ + timeout,
             [to](absl::StatusOr<v1::GetValueReply> answer) { *to = std::move(answer); });
  }
  void Arrive(WorkerTalk& talk, uint32_t worker, std::optional<absl::Status>* to) {
    v1::BarrierRequest request;
    request.mutable_task()->set_role(v1::TaskId::WORKER);
    request.mutable_task()->set_index(worker);
    request.set_name("b");
    request.set_round(1);
    request.set_count(2);
    talk.Arrive(request, now_ + absl::Seconds(5), [to](const absl::Status& status) { *to = status; });
  }

  absl::Time now_ = absl::UnixEpoch();
  absl::Status disk_;
  std::vector<v1::JournalRecord> journal_;
  WorkerTalk talk_;
};

TEST_F(WorkerTalkTest, AValueReachesThoseWhoWaitForItAndThoseWhoAskLater) {
  std::optional<absl::StatusOr<v1::GetValueReply>> early, other, late;
  Get("a", absl::Seconds(5), &early);
  Get("b", absl::Seconds(5), &other);
  ASSERT_TRUE(Put("a", "1").ok());
  ASSERT_TRUE(early.has_value());
  EXPECT_EQ((*early)->value(), "1");
  EXPECT_FALSE(other.has_value());
  Get("a", absl::ZeroDuration(), &late);
  EXPECT_EQ((*late)->value(), "1");
  talk_.Tick(now_ + absl::Seconds(5));
  ASSERT_TRUE(other.has_value());
  EXPECT_TRUE(absl::IsNotFound(other->status()));
}

TEST_F(WorkerTalkTest, AskingWithoutWaitingIsAnsweredAtOnce) {
  std::optional<absl::StatusOr<v1::GetValueReply>> answer;
  Get("a", absl::ZeroDuration(), &answer);
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(absl::IsNotFound(answer->status()));
}

TEST_F(WorkerTalkTest, ABarrierOpensForAllAndAfterARestartForThoseWhoDidNotHear) {
  std::optional<absl::Status> first, second, again;
  Arrive(talk_, 0, &first);
  EXPECT_FALSE(first.has_value());
  Arrive(talk_, 1, &second);
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_TRUE(first->ok() && second->ok());
  WorkerTalk restarted(AppendTo());
  restarted.Restore(journal_);
  Arrive(restarted, 0, &again);
  ASSERT_TRUE(again.has_value());
  EXPECT_TRUE(again->ok());
}

TEST_F(WorkerTalkTest, ABarrierThatDoesNotOpenNamesThoseWhoCame) {
  std::optional<absl::Status> answer;
  Arrive(talk_, 1, &answer);
  talk_.Tick(now_ + absl::Seconds(5));
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(absl::IsDeadlineExceeded(*answer));
  EXPECT_EQ(answer->message(), "barrier b waits for 2 workers; here are worker 1");
  std::optional<absl::Status> other;
  Arrive(talk_, 0, &other);  // The first one has come, even if it does not wait now.
  ASSERT_TRUE(other.has_value());
  EXPECT_TRUE(other->ok());
}

TEST_F(WorkerTalkTest, ValuesOutliveTheCoordinatorAndWhatIsNotInTheJournalIsNotThere) {
  ASSERT_TRUE(Put("a", "1").ok());
  ASSERT_TRUE(Put("a", "2").ok());
  disk_ = absl::UnavailableError("full");
  EXPECT_TRUE(absl::IsUnavailable(Put("b", "3")));
  WorkerTalk restarted(AppendTo());
  restarted.Restore(journal_);
  std::optional<absl::StatusOr<v1::GetValueReply>> a, b;
  Get(restarted, "a", absl::ZeroDuration(), &a);
  Get(restarted, "b", absl::ZeroDuration(), &b);
  EXPECT_EQ((*a)->value(), "2");
  EXPECT_TRUE(absl::IsNotFound(b->status()));
}

TEST_F(WorkerTalkTest, TheEndOfTheJobAnswersEverybody) {
  std::optional<absl::StatusOr<v1::GetValueReply>> get;
  std::optional<absl::Status> worker;
  Get("a", absl::Seconds(5), &get);
  Arrive(talk_, 0, &worker);
  talk_.End(absl::AbortedError("the job has ended"));
  EXPECT_TRUE(absl::IsAborted(get->status()));
  EXPECT_TRUE(absl::IsAborted(*worker));
}

}  // namespace
}  // namespace rubato::coordinator
