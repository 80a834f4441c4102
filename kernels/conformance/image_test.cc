#include "kernels/conformance/harness.h"

namespace rubato::conformance {
namespace {

std::vector<Conv2dGeometry> ConvolutionCases() {
  //        channels, height, width, filters, kernel, stride, padding
  return {{1, 28, 28, 8, 5, 1, 0},   {8, 12, 12, 16, 5, 1, 0}, {3, 9, 7, 5, 3, 1, 1},
          {16, 10, 10, 32, 3, 2, 1}, {2, 6, 5, 3, 1, 1, 0},    {4, 11, 8, 6, 4, 3, 2},
          {1, 3, 3, 1, 3, 1, 0},     {3, 4, 4, 2, 6, 1, 5},    {9, 7, 7, 17, 2, 5, 1}};
}

std::string Describe(const Conv2dGeometry& g) {
  return ShapeText({g.channels, g.height, g.width}) + " filters " + std::to_string(g.filters) + " kernel " +
         std::to_string(g.kernel) + " stride " + std::to_string(g.stride) + " padding " + std::to_string(g.padding);
}

TEST_P(ConformanceTest, ConvolutionsMatchReference) {
  for (const Conv2dGeometry& g : ConvolutionCases()) {
    for (int64_t batch : {1, 4}) {
      SCOPED_TRACE(Describe(g) + " batch " + std::to_string(batch));
      const Shape xs = g.InputShape(batch), ws = g.WeightShape(), ys = g.OutputShape(batch);
      const Values x = RandomValues(NumElements(xs)), w = RandomValues(NumElements(ws));
      const Values dy = RandomValues(NumElements(ys)), before = RandomValues(NumElements(ws));
      DeviceTensor device_x = UploadActivation(xs, x), device_w = UploadActivation(ws, w);
      DeviceTensor device_dy = UploadActivation(ys, dy);

      DeviceTensor y = UnwrittenActivation(ys);
      EXPECT_OK(backend_->Conv2d(g, device_x, device_w, y));
      ExpectClose(y, reference::Conv2d(g, batch, x, w), "y");

      DeviceTensor dx = UnwrittenActivation(xs);
      EXPECT_OK(backend_->Conv2dBackwardData(g, device_dy, device_w, dx));
      ExpectClose(dx, reference::Conv2dBackwardData(g, batch, dy, w), "dx");

      DeviceTensor dw = Unwritten(ws);
      EXPECT_OK(backend_->Conv2dBackwardWeight(g, device_x, device_dy, false, dw));
      Values expected = reference::Conv2dBackwardWeight(g, batch, x, dy);
      ExpectClose(dw, expected, "dw");

      DeviceTensor accumulated = Upload(ws, before);
      EXPECT_OK(backend_->Conv2dBackwardWeight(g, device_x, device_dy, true, accumulated));
      for (size_t i = 0; i < expected.size(); ++i) expected[i] += before[i];
      ExpectClose(accumulated, expected, "accumulated dw");
    }
  }
}

TEST_P(ConformanceTest, ConvolutionHasTheSameBitsEveryTime) {
  const Conv2dGeometry g = {8, 12, 12, 16, 5, 1, 0};
  const Shape ws = g.WeightShape();
  DeviceTensor x = UploadActivation(g.InputShape(8), RandomValues(NumElements(g.InputShape(8))));
  DeviceTensor dy = UploadActivation(g.OutputShape(8), RandomValues(NumElements(g.OutputShape(8))));
  DeviceTensor first = Unwritten(ws), second = Unwritten(ws);
  EXPECT_OK(backend_->Conv2dBackwardWeight(g, x, dy, false, first));
  EXPECT_OK(backend_->Conv2dBackwardWeight(g, x, dy, false, second));
  EXPECT_EQ(Download(first), Download(second));
}

std::vector<Pool2dGeometry> PoolCases() {
  return {{3, 8, 8, 2, 2}, {2, 9, 7, 2, 2}, {2, 9, 7, 3, 2}, {1, 7, 8, 3, 1}, {4, 5, 5, 5, 5}, {2, 9, 9, 2, 3}};
}

TEST_P(ConformanceTest, PoolingMatchesReference) {
  for (const Pool2dGeometry& g : PoolCases()) {
    SCOPED_TRACE(::testing::Message() << ShapeText(g.InputShape(3)) << " window " << g.window << " stride "
                                      << g.stride);
    const Shape xs = g.InputShape(3), ys = g.OutputShape(3);
    const int64_t plane = g.height * g.width, out_plane = g.output_height() * g.output_width();
    const Values x = RandomValues(NumElements(xs)), dy = RandomValues(NumElements(ys));
    DeviceTensor device_x = UploadActivation(xs, x), device_dy = UploadActivation(ys, dy);

    DeviceTensor y = UnwrittenActivation(ys), dx = UnwrittenActivation(xs), argmax = Empty(ys, ElementType::kInt32);
    EXPECT_OK(backend_->MaxPool2d(g, device_x, y, argmax));
    const std::vector<int32_t> places = reference::MaxPool2dPlaces(g, 3, x);
    EXPECT_EQ(DownloadInts(argmax), places);
    Values maxima(places.size()), routed(x.size());
    for (size_t i = 0; i < places.size(); ++i) {
      const int64_t at = static_cast<int64_t>(i) / out_plane * plane + places[i];
      maxima[i] = x[at];
      routed[at] += dy[i];
    }
    ExpectClose(y, maxima, "maxima");
    EXPECT_OK(backend_->MaxPool2dBackward(g, device_dy, argmax, dx));
    ExpectClose(dx, routed, "gradient of the maxima");

    EXPECT_OK(backend_->AveragePool2d(g, device_x, y));
    ExpectClose(y, reference::AveragePool2d(g, 3, x), "averages");
    EXPECT_OK(backend_->AveragePool2dBackward(g, device_dy, dx));
    ExpectClose(dx, reference::AveragePool2dBackward(g, 3, dy), "gradient of the averages");
  }
}

TEST_P(ConformanceTest, MaxPoolTakesTheFirstOfEqualValuesAndKeepsNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Pool2dGeometry g = {1, 2, 4, 2, 2};
  DeviceTensor y = UnwrittenActivation({1, 1, 1, 2}), argmax = Empty({1, 1, 1, 2}, ElementType::kInt32);
  EXPECT_OK(backend_->MaxPool2d(g, UploadActivation({1, 1, 2, 4}, {5, 5, nan, 1, 5, 5, 2, 3}), y, argmax));
  EXPECT_EQ(DownloadInts(argmax), (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(Download(y)[0], 5);
  EXPECT_NE(Download(y)[1], Download(y)[1]);
}

struct GroupNormCase {
  Shape shape;
  int64_t groups;
};

TEST_P(ConformanceTest, GroupNormMatchesReference) {
  for (const auto& [shape, groups] :
       {GroupNormCase{{3, 8, 5, 6}, 4}, {{2, 6, 3, 3}, 1}, {{2, 4, 33, 35}, 4}, {{5, 12}, 3}}) {
    SCOPED_TRACE(::testing::Message() << ShapeText(shape) << " in " << groups << " groups");
    const int64_t batch = shape[0], channels = shape[1];
    Values x = RandomValues(NumElements(shape));
    for (double& value : x) value = AsActivation(3 + 2 * value);
    const Values dy = RandomValues(NumElements(shape));
    const Values gain = RandomValues(channels), bias = RandomValues(channels);
    DeviceTensor device_x = UploadActivation(shape, x), device_gain = Upload({channels}, gain);
    DeviceTensor device_dy = UploadActivation(shape, dy);
    DeviceTensor y = UnwrittenActivation(shape), mean = Unwritten({batch, groups}),
                 inverse = Unwritten({batch, groups});
    EXPECT_OK(backend_->GroupNorm(groups, 1e-3f, device_x, device_gain, Upload({channels}, bias), y, mean, inverse));
    const auto forward = reference::GroupNorm(groups, 1e-3f, batch, x, gain, bias);
    ExpectClose(y, forward.y, "y");
    ExpectClose(mean, forward.mean, "mean");
    ExpectClose(inverse, forward.inverse_deviation, "inverse deviation");

    DeviceTensor dgain = Unwritten({channels}), dbias = Unwritten({channels});
    auto backward = reference::GroupNormBackward(groups, 1e-3f, batch, x, gain, dy);
    EXPECT_OK(backend_->GroupNormBackward(groups, device_x, device_gain, mean, inverse, device_dy, false,
                                          DeviceTensor(), dgain, dbias));
    ExpectClose(dgain, backward.dgain, "dgain");
    ExpectClose(dbias, backward.dbias, "dbias");
    // Again, adding to what is there, and dx over dy.
    EXPECT_OK(backend_->GroupNormBackward(groups, device_x, device_gain, mean, inverse, device_dy, true, device_dy,
                                          dgain, dbias));
    ExpectClose(device_dy, backward.dx, "dx");
    for (double& value : backward.dgain) value *= 2;
    for (double& value : backward.dbias) value *= 2;
    ExpectClose(dgain, backward.dgain, "accumulated dgain");
    ExpectClose(dbias, backward.dbias, "accumulated dbias");
  }
}

TEST_P(ConformanceTest, GroupNormRefusesGroupsThatDoNotDivideTheChannels) {
  DeviceTensor x = Empty({2, 6, 3}), parameters = Empty({6}), statistics = Empty({2, 4});
  EXPECT_EQ(backend_->GroupNorm(4, 1e-3f, x, parameters, parameters, x, statistics, statistics).message(),
            "GroupNorm: groups 4 does not divide 6 channels");
}

INSTANTIATE_TEST_SUITE_P(Images, ConformanceTest, ::testing::ValuesIn(AllBackends()), CaseName);

}  // namespace
}  // namespace rubato::conformance
