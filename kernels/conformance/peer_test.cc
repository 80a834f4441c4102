// Copies between two backends of a kind.
#include "kernels/backend_cuda.h"
#include "kernels/conformance/harness.h"
#include "kernels/planning_backend.h"

namespace rubato::conformance {
namespace {

constexpr int64_t kElements = 100003;

class PeerTest : public ConformanceTest {
 protected:
  void SetUp() override {
    ConformanceTest::SetUp();
    if (IsSkipped()) return;
    absl::StatusOr<std::unique_ptr<Backend>> peer = Peer();
    if (absl::IsFailedPrecondition(peer.status())) GTEST_SKIP() << peer.status().message();
    ASSERT_TRUE(peer.ok()) << peer.status();
    peer_ = *std::move(peer);
  }

  virtual absl::StatusOr<std::unique_ptr<Backend>> Peer() { return GetParam().create(); }

  // Both backends are kept at work, and nobody waits for either: 1, 2, ... kRounds in a tensor of the peer, each copied
  // and added up here.
  static constexpr int kRounds = 20;
  DeviceTensor SumOfCopies() {
    const DeviceTensor x = *peer_->Allocate({kElements}), y = Empty({kElements}), sum = Empty({kElements});
    for (int round = 1; round <= kRounds; ++round) {
      EXPECT_OK(peer_->Fill(static_cast<float>(round), x));
      EXPECT_OK(backend_->CopyFromPeer(peer_.get(), x, y));
      EXPECT_OK(peer_->Fill(1000, x));
      EXPECT_OK(backend_->Axpy(1, y, sum));
    }
    return sum;
  }
  static Values SumOfRounds() { return Values(kElements, kRounds * (kRounds + 1) / 2); }

  std::unique_ptr<Backend> peer_;
};

TEST_P(PeerTest, CopiesBehindAndBeforeTheirWork) { ExpectClose(SumOfCopies(), SumOfRounds(), "the sum"); }

TEST_P(PeerTest, CopiesThereAndBack) {
  const Values values = RandomValues(kElements);
  const DeviceTensor x = Upload({kElements}, values), y = *peer_->Allocate({kElements}), z = Unwritten({kElements});
  EXPECT_OK(peer_->CopyFromPeer(backend_.get(), x, y));
  EXPECT_OK(backend_->Fill(0, x));
  EXPECT_OK(backend_->CopyFromPeer(peer_.get(), y, z));
  EXPECT_OK(peer_->Fill(0, y));
  ExpectClose(z, values, "the copy of the copy");
}

TEST_P(PeerTest, RefusesWhatIsNoPeerAndWhatDoesNotFit) {
  PlanningBackend other;
  const DeviceTensor x = *peer_->Allocate({4}), y = Empty({4});
  EXPECT_EQ(backend_->CopyFromPeer(&other, x, y).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(backend_->CopyFromPeer(peer_.get(), x, Empty({5})).code(), absl::StatusCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Backends, PeerTest, ::testing::ValuesIn(AllBackends()), CaseName);

// Two GPUs.
class OtherGpuTest : public PeerTest {
 protected:
  absl::StatusOr<std::unique_ptr<Backend>> Peer() override { return CreateCudaBackend({.device_index = 1}); }
};

TEST_P(OtherGpuTest, CopiesBehindAndBeforeTheirWork) {
  EXPECT_EQ(backend_->Name().rfind("cuda:0 ", 0), 0) << backend_->Name();
  EXPECT_EQ(peer_->Name().rfind("cuda:1 ", 0), 0) << peer_->Name();
  ExpectClose(SumOfCopies(), SumOfRounds(), "the sum");
}

TEST_P(OtherGpuTest, ACopyHasTheElementsOfItsTime) {
  const DeviceTensor x = *peer_->Allocate({kElements}), before = Unwritten({kElements}), after = Unwritten({kElements});
  EXPECT_OK(peer_->Fill(1, x));
  EXPECT_OK(backend_->CopyFromPeer(peer_.get(), x, before));
  EXPECT_OK(peer_->Fill(2, x));
  EXPECT_OK(backend_->CopyFromPeer(peer_.get(), x, after));
  EXPECT_OK(peer_->Fill(3, x));
  ExpectClose(before, Values(kElements, 1), "what was there first");
  ExpectClose(after, Values(kElements, 2), "what was there then");
}

INSTANTIATE_TEST_SUITE_P(Backends, OtherGpuTest,
                         ::testing::Values(BackendCase{"Cuda", [] { return CreateCudaBackend({}); }}), CaseName);

}  // namespace
}  // namespace rubato::conformance
