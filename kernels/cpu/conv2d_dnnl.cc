#include <dnnl.hpp>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "kernels/cpu/conv2d.h"
#include "kernels/cpu/openmp_threads.h"

namespace rubato::cpu {
namespace {

using dnnl::memory;

enum class Pass { kForward, kBackwardData, kBackwardWeight };

// oneDNN's own layouts hold channels in blocks of this many; with fewer input channels, its blocked backward-data pass
// is several times slower than the plain one.
constexpr int64_t kBlockedChannels = 8;
// Plans kept at once. A model has three for each of its convolutions and batch sizes; beyond that they are made anew.
constexpr size_t kMaxPlans = 256;

// One operand of a pass: our memory in plain layout, and oneDNN's in its own if that differs.
struct Operand {
  memory plain;
  memory own;  // Empty when the plain layout is used.
  dnnl::reorder convert;
  bool converts = false;
};

// A pass that is ready to run on pointers.
struct Plan {
  dnnl::primitive primitive;
  std::vector<Operand> inputs;
  Operand output;
  std::unordered_map<int, memory> arguments;
};

class DnnlConv2d : public Conv2d {
 public:
  explicit DnnlConv2d(int threads) : threads_(threads), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

  absl::Status Forward(const Conv2dGeometry& g, int64_t batch, const float* x, const float* weight, float* y) override {
    return Run(Pass::kForward, g, batch, {x, weight}, y);
  }

  absl::Status BackwardData(const Conv2dGeometry& g, int64_t batch, const float* dy, const float* weight,
                            float* dx) override {
    return Run(Pass::kBackwardData, g, batch, {dy, weight}, dx);
  }

  absl::Status BackwardWeight(const Conv2dGeometry& g, int64_t batch, const float* x, const float* dy, bool accumulate,
                              float* dweight) override {
    if (!accumulate) return Run(Pass::kBackwardWeight, g, batch, {x, dy}, dweight);
    // oneDNN always overwrites.
    gradient_.resize(NumElements(g.WeightShape()));
    RUBATO_RETURN_IF_ERROR(Run(Pass::kBackwardWeight, g, batch, {x, dy}, gradient_.data()));
    for (size_t i = 0; i < gradient_.size(); ++i) dweight[i] += gradient_[i];
    return absl::OkStatus();
  }

 private:
  using Key = std::tuple<Pass, Conv2dGeometry, int64_t>;

  absl::Status Run(Pass pass, const Conv2dGeometry& g, int64_t batch, std::vector<const float*> inputs, float* output);
  Plan& FindPlan(const Key& key);
  Plan MakePlan(Pass pass, const Conv2dGeometry& g, int64_t batch);
  // Adds an operand in layout `own` under the argument number.
  Operand AddOperand(Plan& plan, int argument, const memory::dims& dims, memory::format_tag layout,
                     const memory::desc& own, bool is_output);

  const int threads_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  std::map<Key, Plan> plans_;
  std::vector<float> gradient_;
};

Operand DnnlConv2d::AddOperand(Plan& plan, int argument, const memory::dims& dims, memory::format_tag layout,
                               const memory::desc& own, bool is_output) {
  Operand operand;
  memory::desc plain(dims, memory::data_type::f32, layout);
  operand.plain = memory(plain, engine_, DNNL_MEMORY_NONE);
  operand.converts = own != plain;
  if (operand.converts) {
    operand.own = memory(own, engine_);
    operand.convert = is_output ? dnnl::reorder(operand.own, operand.plain) : dnnl::reorder(operand.plain, operand.own);
  }
  plan.arguments[argument] = operand.converts ? operand.own : operand.plain;
  return operand;
}

Plan DnnlConv2d::MakePlan(Pass pass, const Conv2dGeometry& g, int64_t batch) {
  using tag = memory::format_tag;
  const memory::dims x = g.InputShape(batch), w = g.WeightShape(), y = g.OutputShape(batch);
  const memory::dims stride = {g.stride, g.stride}, padding = {g.padding, g.padding};
  // oneDNN's padding on the right and at the bottom leaves out what no window reaches.
  const memory::dims end_padding = {(g.output_height() - 1) * g.stride + g.kernel - g.height - g.padding,
                                    (g.output_width() - 1) * g.stride + g.kernel - g.width - g.padding};
  const bool plain = pass == Pass::kBackwardData && g.channels < kBlockedChannels;
  auto layout = [&](const memory::dims& dims, tag plain_layout) {
    return memory::desc(dims, memory::data_type::f32, plain ? plain_layout : tag::any);
  };
  const memory::desc dx = layout(x, tag::nchw), dw = layout(w, tag::oihw), dy = layout(y, tag::nchw);
  const auto algorithm = dnnl::algorithm::convolution_direct;
  dnnl::convolution_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, algorithm, dx, dw, dy, stride, padding, end_padding}, engine_);

  Plan plan;
  if (pass == Pass::kForward) {
    plan.primitive = dnnl::convolution_forward(forward);
    plan.inputs = {AddOperand(plan, DNNL_ARG_SRC, x, tag::nchw, forward.src_desc(), false),
                   AddOperand(plan, DNNL_ARG_WEIGHTS, w, tag::oihw, forward.weights_desc(), false)};
    plan.output = AddOperand(plan, DNNL_ARG_DST, y, tag::nchw, forward.dst_desc(), true);
  } else if (pass == Pass::kBackwardData) {
    dnnl::convolution_backward_data::primitive_desc backward({algorithm, dx, dw, dy, stride, padding, end_padding},
                                                             engine_, forward);
    plan.primitive = dnnl::convolution_backward_data(backward);
    plan.inputs = {AddOperand(plan, DNNL_ARG_DIFF_DST, y, tag::nchw, backward.diff_dst_desc(), false),
                   AddOperand(plan, DNNL_ARG_WEIGHTS, w, tag::oihw, backward.weights_desc(), false)};
    plan.output = AddOperand(plan, DNNL_ARG_DIFF_SRC, x, tag::nchw, backward.diff_src_desc(), true);
  } else {
    dnnl::convolution_backward_weights::primitive_desc backward({algorithm, dx, dw, dy, stride, padding, end_padding},
                                                                engine_, forward);
    plan.primitive = dnnl::convolution_backward_weights(backward);
    plan.inputs = {AddOperand(plan, DNNL_ARG_SRC, x, tag::nchw, backward.src_desc(), false),
                   AddOperand(plan, DNNL_ARG_DIFF_DST, y, tag::nchw, backward.diff_dst_desc(), false)};
    plan.output = AddOperand(plan, DNNL_ARG_DIFF_WEIGHTS, w, tag::oihw, backward.diff_weights_desc(), true);
  }
  return plan;
}

Plan& DnnlConv2d::FindPlan(const Key& key) {
  auto found = plans_.find(key);
  if (found != plans_.end()) return found->second;
  if (plans_.size() >= kMaxPlans) plans_.clear();
  return plans_.emplace(key, MakePlan(std::get<Pass>(key), std::get<Conv2dGeometry>(key), std::get<int64_t>(key)))
      .first->second;
}

absl::Status DnnlConv2d::Run(Pass pass, const Conv2dGeometry& g, int64_t batch, std::vector<const float*> inputs,
                             float* output) {
  // Plans depend on the number of threads, so it is set before they are made.
  omp_set_num_threads(threads_);
  try {
    Plan& plan = FindPlan({pass, g, batch});
    for (size_t i = 0; i < inputs.size(); ++i) {
      Operand& operand = plan.inputs[i];
      operand.plain.set_data_handle(const_cast<float*>(inputs[i]));
      if (operand.converts) operand.convert.execute(stream_, operand.plain, operand.own);
    }
    plan.output.plain.set_data_handle(output);
    plan.primitive.execute(stream_, plan.arguments);
    if (plan.output.converts) plan.output.convert.execute(stream_, plan.output.own, plan.output.plain);
    stream_.wait();
  } catch (const dnnl::error& error) {
    return absl::InternalError(absl::StrCat("oneDNN refused a convolution of ", ShapeText(g.InputShape(batch)),
                                            " with ", ShapeText(g.WeightShape()), ": ", error.what()));
  }
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<Conv2d> NewConv2d(int threads) { return std::make_unique<DnnlConv2d>(threads); }

}  // namespace rubato::cpu
