// What a server makes of stale pushes, against the papers' formulas in double precision: workers pull and push in turn,
// and the store keeps what each of them computes from.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "common/random.h"
#include "kernels/optimizer/encoded_gradient.h"
#include "server/chunk_store.h"
#include "server/rules/testing/builders.h"

namespace rubato::server {
namespace {

constexpr int64_t kLength = 40;
constexpr int kWorkers = 3;

class ChunkStoreCompensationTest : public testing::Test {
 protected:
  ChunkStoreCompensationTest() {
    config_.mutable_cluster()->set_workers(kWorkers);
    config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::SGD);
    config_.mutable_optimizer()->set_learning_rate(0.1);
    model_.tensors.push_back({"layer.weight", {kLength}, v1::HE_NORMAL, false, kLength, 1, true});
    job_.add_chunks()->set_length(kLength);
  }

  v1::CompensationConfig& compensation() { return *config_.mutable_consistency()->mutable_compensation(); }
  void Start() {
    store_ = std::make_unique<ChunkStore>(config_, model_, job_, std::vector<uint32_t>{0});
    version_ = 0;
  }
  std::vector<float> Weights() const {
    const float* weights = store_->Get(0).weights->data();
    return {weights, weights + kLength};
  }

  // The worker is given the weights for a step of SSP or ASYNC, or of SYNC.
  void Pull(int worker, bool may_be_stale = true) {
    if (store_->keeps_pulled()) store_->NotePulled(0, Worker(worker), version_, may_be_stale);
    base_[worker] = version_;
    pulled_[worker] = Weights();
  }
  Contribution PushFrom(int worker, const std::vector<float>& gradient) const {
    Contribution push = PushOf(worker, 1, 0);
    push.base_version = base_[worker];
    struct Sent {
      std::vector<float> values;
      ByteSpan piece;
      EncodedGradient gradient;
    };
    auto sent = std::make_shared<Sent>();
    sent->values = gradient;
    sent->piece = BytesOf(sent->values.data(), kLength);
    sent->gradient.pieces = {&sent->piece, 1};
    push.gradient = {sent, &sent->gradient};
    return push;
  }
  void Push(int worker, const std::vector<float>& gradient) {
    store_->Apply({0, {PushFrom(worker, gradient)}, false, version_, 1.0, /*is_one_push=*/true});
    ++version_;
  }

  // 200 pushes of gradients of a noisy quadratic, of which worker 2 makes one while the others make two each, against
  // `expected`, the paper's update of one weight: what it is after a push of gradient g, computed from `pulled`.
  void ExpectFollows(
      const std::function<double(int64_t i, double w, double g, double pulled, int64_t staleness)>& expected) {
    Start();
    Random random(5);
    const std::vector<float> initial = Weights();
    std::vector<double> w(initial.begin(), initial.end());
    std::vector<std::vector<double>> reference_pulled(kWorkers, w);
    for (int worker = 0; worker < kWorkers; ++worker) Pull(worker);
    int64_t stalest = 0;
    for (int t = 0; t < 200; ++t) {
      const int worker = std::vector<int>{0, 1, 2, 0, 1}[t % 5];
      const int64_t staleness = version_ - base_[worker];
      stalest = std::max(stalest, staleness);
      std::vector<float> gradient(kLength);
      for (int64_t i = 0; i < kLength; ++i) {
        gradient[i] = static_cast<float>(pulled_[worker][i] + random.Normal());
        w[i] = expected(i, w[i], gradient[i], reference_pulled[worker][i], staleness);
      }
      Push(worker, gradient);
      Pull(worker);
      reference_pulled[worker] = w;
    }
    EXPECT_EQ(stalest, 4);
    for (int64_t i = 0; i < kLength; ++i) ASSERT_NEAR(store_->Get(0).weights->data()[i], w[i], 2e-5) << i;
  }

  v1::JobConfig config_;
  ModelSpec model_;
  v1::JobDescription job_;
  std::unique_ptr<ChunkStore> store_;
  int64_t version_ = 0;
  int64_t base_[kWorkers] = {};
  std::vector<float> pulled_[kWorkers];
};

TEST_F(ChunkStoreCompensationTest, StalenessAwareDividesTheRateByTheStaleness) {
  compensation().mutable_staleness_aware();
  ExpectFollows([](int64_t, double w, double g, double, int64_t staleness) {
    return w - 0.1 / static_cast<double>(std::max<int64_t>(1, staleness)) * g;
  });
}

TEST_F(ChunkStoreCompensationTest, DcAsgdMovesAGradientToTheWeightsThatItIsAppliedTo) {
  compensation().mutable_dc_asgd()->set_lambda(0.5);
  ExpectFollows(
      [](int64_t, double w, double g, double pulled, int64_t) { return w - 0.1 * (g + 0.5 * g * g * (w - pulled)); });
}

TEST_F(ChunkStoreCompensationTest, AdaptiveDcAsgdDividesByTheRootOfTheMeanSquare) {
  compensation().mutable_dc_asgd()->set_lambda(2);
  compensation().mutable_dc_asgd()->set_adaptive(true);
  std::vector<double> mean_square(kLength);
  ExpectFollows([&](int64_t i, double w, double g, double pulled, int64_t) {
    mean_square[i] = 0.95 * mean_square[i] + 0.05 * g * g;
    return w - 0.1 * (g + 2 / std::sqrt(mean_square[i] + 1e-7) * g * g * (w - pulled));
  });
}

TEST_F(ChunkStoreCompensationTest, GapAwareDividesByTheGapInUsualMoves) {
  compensation().mutable_gap_aware();
  config_.mutable_optimizer()->set_weight_decay(0.05);
  std::vector<double> squares(kLength), weights(kLength);
  ExpectFollows([&](int64_t i, double w, double g, double pulled, int64_t) {
    g += 0.05 * w;
    if (weights[i] > 0) g /= 1 + std::abs(w - pulled) / std::sqrt(squares[i] / weights[i]);
    squares[i] = 0.999 * squares[i] + 0.001 * (0.1 * g) * (0.1 * g);
    weights[i] = 0.999 * weights[i] + 0.001;
    return w - 0.1 * g;
  });
}

TEST_F(ChunkStoreCompensationTest, DelayedNesterovMovesItsMomentumOnceInAPeriod) {
  compensation().mutable_delayed_nesterov()->set_period(3);
  compensation().mutable_delayed_nesterov()->set_momentum(0.8);
  std::vector<double> momentum(kLength), sum(kLength);
  std::vector<int> pushes(kLength);
  ExpectFollows([&](int64_t i, double w, double g, double, int64_t) {
    sum[i] += g;
    w -= 0.1 * g / 3;
    if (++pushes[i] % 3 != 0) return w;
    momentum[i] = 0.8 * momentum[i] + sum[i] / 3;
    sum[i] = 0;
    return w - 0.1 * 0.8 * momentum[i];
  });
}

// A step of SYNC has nothing to compensate for, whatever its contributions say.
TEST_F(ChunkStoreCompensationTest, SyncIsAsWithoutCompensation) {
  std::vector<float> gradient(kLength, 2.0f);
  const auto after = [&] {
    Start();
    for (int t = 0; t < 3; ++t) {
      for (int worker : {0, 1}) Pull(worker, /*may_be_stale=*/false);
      base_[1] = 0;
      store_->Apply({0, {PushFrom(0, gradient), PushFrom(1, gradient)}, false, version_++, 1.0});
    }
    return Weights();
  };
  const std::vector<float> plain = after();
  compensation().mutable_staleness_aware();
  EXPECT_EQ(after(), plain);
  compensation().mutable_dc_asgd()->set_lambda(0.5);
  EXPECT_EQ(after(), plain);
  EXPECT_TRUE(store_->Get(0).pulled.empty());
  compensation().mutable_gap_aware();
  EXPECT_EQ(after(), plain);
}

TEST_F(ChunkStoreCompensationTest, SyncWithDelayedNesterovIsNesterov) {
  std::vector<float> gradient(kLength, 2.0f);
  const auto after = [&] {
    Start();
    for (int t = 0; t < 3; ++t) store_->Apply({0, {PushFrom(0, gradient)}, false, version_++, 1.0});
    return Weights();
  };
  compensation().mutable_delayed_nesterov()->set_period(2);
  compensation().mutable_delayed_nesterov()->set_momentum(0.8);
  const std::vector<float> delayed = after();
  config_.mutable_consistency()->clear_compensation();
  config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::NESTEROV);
  config_.mutable_optimizer()->set_momentum(0.8);
  EXPECT_EQ(after(), delayed);
}

TEST_F(ChunkStoreCompensationTest, KeepsOneVersionForEachWorkerAndWhatIsApplied) {
  compensation().mutable_dc_asgd()->set_lambda(0.04);
  Start();
  const int64_t before = store_->memory_bytes();
  const std::vector<float> gradient(kLength, 1.0f);
  for (int worker = 0; worker < kWorkers; ++worker) Pull(worker);
  EXPECT_EQ(store_->memory_bytes(), before);  // They share one.
  for (int t = 0; t < 20; ++t) {
    Push(t % kWorkers, gradient);
    Pull(t % kWorkers);
  }
  EXPECT_EQ(store_->memory_bytes(), before + kWorkers * kLength * static_cast<int64_t>(sizeof(float)));
}

TEST_F(ChunkStoreCompensationTest, AWorkerThatLeavesHoldsNoVersionAnyMore) {
  compensation().mutable_dc_asgd()->set_lambda(0.04);
  Start();
  Pull(1);
  const FloatBuffer::Ptr weights = store_->Get(0).weights;
  EXPECT_EQ(weights.use_count(), 3);
  store_->KeepPulledOf(MakePlan(2, v1::ASYNC, 1, {0, 2}));
  EXPECT_EQ(weights.use_count(), 2);
}

TEST_F(ChunkStoreCompensationTest, WithoutItNothingIsKept) {
  compensation().mutable_staleness_aware();
  Start();
  EXPECT_FALSE(store_->keeps_pulled());
  EXPECT_TRUE(store_->Get(0).slots.empty());
  compensation().mutable_ringmaster()->set_threshold(3);
  Start();
  EXPECT_FALSE(store_->keeps_pulled());
}

// A push of a version that is not the one that the worker was given last, as after an answer that was lost: applied as
// it is.
TEST_F(ChunkStoreCompensationTest, APushOfWeightsThatAreNotKnownIsAppliedAsItIs) {
  compensation().mutable_dc_asgd()->set_lambda(0.5);
  Start();
  Pull(0);
  Pull(1);
  const std::vector<float> gradient(kLength, 1.0f);
  Push(1, gradient);
  base_[0] = 7;
  const float before = Weights()[3];
  Push(0, gradient);
  EXPECT_FLOAT_EQ(Weights()[3], before - 0.1f);
}

// What a checkpoint has of it; and a snapshot is not written while it is held.
TEST_F(ChunkStoreCompensationTest, ASnapshotHasTheStateAndHowFarItsPeriodIs) {
  compensation().mutable_delayed_nesterov()->set_period(3);
  compensation().mutable_delayed_nesterov()->set_momentum(0.8);
  Start();
  const std::vector<float> gradient(kLength, 1.0f);
  Push(0, gradient);
  Push(0, gradient);
  const ChunkSnapshot kept = store_->Keep(0);
  EXPECT_EQ(kept.record.compensated(), 2);
  ASSERT_EQ(kept.slots.size(), 2u);  // Nesterov's velocity and the period's sum.
  EXPECT_EQ(kept.slots[0]->data()[0], 0.0f);
  EXPECT_EQ(kept.slots[1]->data()[0], 2.0f);
  // An update of SYNC reads and writes the first slot alone.
  store_->Apply({0, {PushFrom(0, gradient)}, false, version_++, 1.0});
  EXPECT_EQ(store_->Get(0).slots[1]->data()[0], 2.0f);
  Push(0, gradient);
  EXPECT_EQ(kept.slots[0]->data()[0], 0.0f);
  EXPECT_EQ(kept.slots[1]->data()[0], 2.0f);
  EXPECT_EQ(store_->Get(0).slots[1]->data()[0], 0.0f);
}

}  // namespace
}  // namespace rubato::server
