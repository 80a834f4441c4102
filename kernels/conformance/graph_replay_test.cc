// Work that a device may know by itself after some time gives what its operations give.
#include <memory>
#include <utility>

#include "kernels/conformance/harness.h"

namespace rubato::conformance {
namespace {

// More than a device needs to know the work.
constexpr int kRuns = 6;

class GraphReplayTest : public ConformanceTest {
 protected:
  // Work that calls its operations again and again, if the backend has none of its own.
  class Plain : public GraphReplay {
   public:
    absl::Status Run(absl::FunctionRef<absl::Status()> enqueue) override { return enqueue(); }
  };

  std::unique_ptr<GraphReplay> NewWork() {
    std::unique_ptr<GraphReplay> work = backend_->NewGraphReplay();
    return work != nullptr ? std::move(work) : std::make_unique<Plain>();
  }

  // Whether work is known to the backend at some time.
  bool Learns() { return backend_->NewGraphReplay() != nullptr; }

  absl::StatusOr<std::shared_ptr<void>> Pinned(int64_t n) {
    return backend_->AllocateHost(n * static_cast<int64_t>(sizeof(float)));
  }
};

TEST_P(GraphReplayTest, IsDoneAgainWithTheElementsOfNow) {
  constexpr int64_t kRows = 7, kColumns = 33, kUnits = 5;
  const DeviceTensor given = Empty({kRows, kColumns}), x = EmptyActivation({kRows, kColumns});
  const DeviceTensor w = UploadActivation({kUnits, kColumns}, RandomValues(kUnits * kColumns));
  const DeviceTensor bias = Empty({kUnits}), y = Empty({kRows, kUnits});
  const Values weights = Download(w);
  const std::unique_ptr<GraphReplay> work = NewWork();
  int calls = 0;
  for (int run = 0; run < kRuns; ++run) {
    const Values values = RandomValues(kRows * kColumns);
    const std::vector<float> floats(values.begin(), values.end());
    EXPECT_OK(backend_->CopyToDevice(given, 0, given.elements(), floats.data()));
    EXPECT_OK(backend_->Fill(static_cast<float>(run), bias));
    EXPECT_OK(work->Run([&]() -> absl::Status {
      ++calls;
      absl::Status status = backend_->Copy(given, x);
      status.Update(backend_->Gemm(false, true, 1, x, w, 0, y));
      status.Update(backend_->AddBias(bias, y));
      return status;
    }));
    Values expected =
        reference::Gemm(false, true, kRows, kUnits, kColumns, 1, values, weights, 0, Values(kRows * kUnits));
    for (double& value : expected) value += run;
    ExpectClose(y, expected, "y");
  }
  EXPECT_EQ(calls, Learns() ? 2 : kRuns);
}

TEST_P(GraphReplayTest, IsInOrderWithCopies) {
  constexpr int64_t kElements = 50'001;
  const DeviceTensor x = Empty({kElements}), y = Empty({kElements});
  const std::unique_ptr<GraphReplay> work = NewWork();
  std::vector<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>> copies;
  for (int run = 0; run < kRuns; ++run) {
    copies.emplace_back(*Pinned(kElements), *Pinned(kElements));
    auto* const from = static_cast<float*>(copies.back().first.get());
    std::fill(from, from + kElements, static_cast<float>(run));
    EXPECT_OK(backend_->CopyToDevice(x, 0, kElements, from));
    EXPECT_OK(work->Run([&]() -> absl::Status {
      absl::Status status = backend_->Copy(x, y);
      status.Update(backend_->Scale(2, y));
      status.Update(backend_->Scale(3, x));
      return status;
    }));
    EXPECT_OK(backend_->CopyToHost(y, 0, kElements, copies.back().second.get()));
  }
  EXPECT_OK(backend_->Synchronize());
  for (int run = 0; run < kRuns; ++run) {
    const auto* const to = static_cast<const float*>(copies[run].second.get());
    for (int64_t i = 0; i < kElements; ++i) ASSERT_EQ(to[i], static_cast<float>(2 * run)) << run << ", element " << i;
  }
}

TEST_P(GraphReplayTest, KeepsItsScratchMemory) {
  const Values small = RandomValues(9 * 17), large = RandomValues(90 * 70);
  const DeviceTensor a = UploadActivation({9, 17}, small), c = Unwritten({9, 9});
  const DeviceTensor b = UploadActivation({90, 70}, large), d = Unwritten({90, 90});
  const Values expected = reference::Gemm(false, true, 9, 9, 17, 1, small, small, 0, Values(81));
  const std::unique_ptr<GraphReplay> work = NewWork();
  for (int run = 0; run < kRuns; ++run) {
    EXPECT_OK(work->Run([&]() -> absl::Status {
      absl::Status status = backend_->Gemm(false, true, 1, a, a, 0, c);
      status.Update(backend_->Scale(1, c));
      return status;
    }));
    // What comes in between needs more, and another time there is more of it.
    if (run == kRuns / 2) {
      EXPECT_OK(backend_->Gemm(false, true, 1, b, b, 0, d));
      ExpectClose(d, reference::Gemm(false, true, 90, 90, 70, 1, large, large, 0, Values(8100)), "d");
    }
    ExpectClose(c, expected, "c");
    EXPECT_OK(backend_->Fill(0, c));
  }
}

TEST_P(GraphReplayTest, ThatCannotBeKnownIsDoneAsItIs) {
  constexpr int64_t kElements = 100;
  const DeviceTensor x = Empty({kElements}), y = Empty({kElements});
  const std::shared_ptr<void> host = *Pinned(kElements);
  const std::unique_ptr<GraphReplay> work = NewWork();
  for (int run = 1; run <= kRuns; ++run) {
    EXPECT_OK(work->Run([&]() -> absl::Status {
      absl::Status status = backend_->Fill(static_cast<float>(run), x);
      status.Update(backend_->CopyToHost(x, 0, kElements, host.get()));
      status.Update(backend_->Axpy(1, x, y));
      return status;
    }));
  }
  ExpectClose(y, Values(kElements, kRuns * (kRuns + 1) / 2), "y");
}

TEST_P(GraphReplayTest, ReturnsItsErrorsAndGoesOn) {
  const DeviceTensor x = Upload({3}, Values(3, 1.0)), other = Empty({4});
  const std::unique_ptr<GraphReplay> work = NewWork();
  for (int run = 0; run < kRuns; ++run) {
    EXPECT_EQ(work->Run([&]() -> absl::Status {
                    absl::Status status = backend_->Copy(x, other);
                    status.Update(backend_->Scale(2, other));
                    return status;
                  })
                  .code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_OK(backend_->Scale(2, x));
  ExpectClose(x, Values(3, 2.0), "x");
}

INSTANTIATE_TEST_SUITE_P(Backends, GraphReplayTest, ::testing::ValuesIn(AllBackends()), CaseName);

}  // namespace
}  // namespace rubato::conformance
