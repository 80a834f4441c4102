#include "server/rules/assignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/rules/testing/builders.h"

namespace rubato::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Reply = v1::ExchangeReply;

class AssignmentTest : public testing::Test {
 protected:
  AssignmentTest() {
    assignment_.Await({0, 1, 2});
    assignment_.Name(Worker(0));
  }
  Assignment assignment_;
};

TEST_F(AssignmentTest, AChunkTakesItsWeightsOnce) {
  EXPECT_FALSE(assignment_.complete());
  EXPECT_THAT(assignment_.OnAssign(Worker(0), {0, 2}).taken, ElementsAre(0, 2));
  const Assignment::Answer repeated = assignment_.OnAssign(Worker(0), {2, 1});
  EXPECT_EQ(repeated.outcome, Reply::OK);
  EXPECT_THAT(repeated.taken, ElementsAre(1));
  EXPECT_TRUE(assignment_.complete());
  EXPECT_THAT(assignment_.OnAssign(Worker(0), {0, 1, 2}).taken, IsEmpty());
}

TEST_F(AssignmentTest, OthersThanTheOneThatIsNamedWait) {
  const Assignment::Answer answer = assignment_.OnAssign(Worker(1), {0});
  EXPECT_EQ(answer.outcome, Reply::WAITING);
  EXPECT_THAT(answer.message, HasSubstr("worker 0"));
  EXPECT_THAT(answer.taken, IsEmpty());
}

TEST_F(AssignmentTest, AnotherOneGoesOnWhereALostOneWas) {
  assignment_.OnAssign(Worker(0), {0});
  assignment_.Name(Worker(1));
  EXPECT_EQ(assignment_.OnAssign(Worker(0), {1}).outcome, Reply::WAITING);
  EXPECT_THAT(assignment_.OnAssign(Worker(1), {0, 1, 2}).taken, ElementsAre(1, 2));
  EXPECT_TRUE(assignment_.complete());
}

TEST_F(AssignmentTest, StateIsTakenUntilTheWeightsAre) {
  EXPECT_THAT(assignment_.OnAssignState(Worker(0), {0, 2}).taken, ElementsAre(0, 2));
  EXPECT_EQ(assignment_.OnAssignState(Worker(1), {0}).outcome, Reply::WAITING);
  EXPECT_THAT(assignment_.OnAssign(Worker(0), {0}).taken, ElementsAre(0));
  EXPECT_THAT(assignment_.OnAssignState(Worker(0), {0, 2}).taken, ElementsAre(2));
  EXPECT_FALSE(assignment_.complete());
}

TEST_F(AssignmentTest, BeforeAnybodyIsNamedAllWait) {
  Assignment early;
  early.Await({0});
  EXPECT_EQ(early.OnAssign(Worker(0), {0}).outcome, Reply::WAITING);
}

TEST(NoAssignmentTest, IsRefusedWhereNothingIsAwaited) {
  Assignment none;
  EXPECT_TRUE(none.complete());
  const Assignment::Answer answer = none.OnAssign(Worker(0), {0});
  EXPECT_EQ(answer.outcome, Reply::REFUSED);
  EXPECT_THAT(answer.message, HasSubstr("assign"));
}

}  // namespace
}  // namespace rubato::server
