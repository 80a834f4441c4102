#ifndef RUBATO_KERNELS_BACKEND_H_
#define RUBATO_KERNELS_BACKEND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/codec/codec.h"
#include "kernels/device_tensor.h"
#include "kernels/geometry.h"
#include "kernels/optimizer/update_rule.h"
#include "kernels/workspace.h"

namespace rubato {

class Operations;

// A point in a backend's stream of work. Thread-safe.
class Event {
 public:
  virtual ~Event() = default;
  // Whether everything enqueued before the event was recorded has finished. Does not block.
  virtual bool Done() const = 0;
  // Blocks until Done. Internal: some of that work failed on the device.
  virtual absl::Status Wait() const = 0;
};

// Memory of a device, in bytes.
struct DeviceMemory {
  int64_t total = 0;
  // What can still be allocated, as far as the device knows.
  int64_t free = 0;
};

// y = f(x), element by element.
enum class Activation { kRelu, kTanh, kGelu };

// Elements are dropped with probability `rate`; kept ones are scaled by 1 / (1 - rate). Element i of the tensor is
// kept when word i mod 4 of the Philox block (seed, stream, i / 4) is at least rate * 2^32 (common/random.h), so the
// mask is the same on every device and need not be stored.
struct DropoutMask {
  double rate = 0;
  uint64_t seed = 0;
  uint64_t stream = 0;
};

// How elements [offset, offset + count) of a tensor are encoded (kernels/codec/codec.h). Codecs that round
// at random draw from (seed, stream).
struct EncodedRange {
  CodecSpec codec;
  int64_t offset = 0;
  int64_t count = 0;
  uint64_t seed = 0;
  uint64_t stream = 0;
};

// Elements [from, from + count) of each row of one tensor, and where they begin in the rows of another.
struct ColumnRange {
  int64_t from = 0;
  int64_t count = 0;
  int64_t to = 0;
};

// Consecutive units of a linear layer: rows [begin, end) of its weight, and the columns of y and dy that belong to
// them.
struct UnitRange {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
};

// Work that is given to a device again and again: the same operations in the same order, with the same tensors and
// numbers, while the elements change. The device may capture it as a graph once and replay that. Used by the backend's
// thread; ends before its backend, and is not run any more once one of its tensors is gone.
class GraphReplay {
 public:
  virtual ~GraphReplay() = default;
  // `enqueue` calls operations of the backend, and no copies or allocations; or it is not called, if the device
  // replays the work. Returns its errors.
  virtual absl::Status Run(absl::FunctionRef<absl::Status()> enqueue) = 0;
};

// A device and one stream of work on it: what layers are built from, the same for every kind of device.
//
// Operations and copies are enqueued and may run later; they behave as if run in the order of the calls. The host sees
// a result only through CopyToHost, or HostPointer if that is not null, once an event recorded after it is done:
//
//   RUBATO_RETURN_IF_ERROR(backend.Gemm(false, true, 1, x, weight, 0, y));
//   RUBATO_RETURN_IF_ERROR(backend.CopyToHost(y, 0, y.elements(), host));
//   RUBATO_RETURN_IF_ERROR(backend.Synchronize());
//
// Each operation's last tensors are its outputs; the handle is const and the elements change. The first dimension of x,
// y, dx, dy is the batch; dx and dy are gradients of x and y. Outputs must not overlap inputs unless said otherwise.
// With `accumulate`, parameter gradients are added to what is there.
//
// Tensors are float32 unless said otherwise. x, y, dx and dy are activations: float32 or ActivationType, all of an
// operation alike. They are computed with in float32, and rounded when they are written. What multiplies matrices
// (Gemm, Linear, Conv2d, CausalAttention) takes them in ActivationType alone, and weights too.
//
// Every operation returns InvalidArgument, and does nothing, when shapes or types do not fit each other, and Internal
// when the device or its library refuses it. An error that the device finds later comes from Synchronize or
// Event::Wait.
//
// Used by one thread at a time; HostPointer and events by any. Tensors must not outlive their backend.
//
// A backend derives from this class for its memory and its order, and has Operations (kernels/operations.h) for what it
// computes. Arguments are checked here, for all of them.
class Backend {
 public:
  virtual ~Backend() = default;

  // "cpu", for messages.
  virtual std::string Name() const = 0;

  // ---- memory ----

  // Zeros. InvalidArgument: a negative or overflowing shape, or 16 bits that are not ActivationType's.
  // ResourceExhausted: the device has not that much memory.
  absl::StatusOr<DeviceTensor> Allocate(Shape shape, ElementType type = ElementType::kFloat32);
  // Takes memory in one piece for so many bytes of tensors, each rounded up to a multiple of 256, and of what
  // operations take while they run. What is needed beyond that is asked for then. ResourceExhausted: there is not that
  // much.
  virtual absl::Status Reserve(int64_t /*tensor_bytes*/, int64_t /*workspace_bytes*/) { return absl::OkStatus(); }
  // A float32 tensor whose elements are sent from where they are: in memory that the sender's peers can read, if the
  // backend has such.
  absl::StatusOr<DeviceTensor> AllocateForSending(Shape shape);
  // Host memory for copies: at least so many zeroed bytes, at a multiple of 64, from and to which this backend copies
  // without making the caller wait. The second: in memory that the caller's peers can read, if the backend has such.
  // ResourceExhausted: there is not that much.
  virtual absl::StatusOr<std::shared_ptr<void>> AllocateHost(int64_t bytes) = 0;
  virtual absl::StatusOr<std::shared_ptr<void>> AllocateHostForSending(int64_t bytes) = 0;
  // Copies `count` elements, starting at element `offset` of the tensor. The host memory must stay as it is until an
  // event recorded afterwards is done. OutOfRange: the elements are not all inside the tensor.
  absl::Status CopyToDevice(const DeviceTensor& to, int64_t offset, int64_t count, const void* from);
  absl::Status CopyToHost(const DeviceTensor& from, int64_t offset, int64_t count, void* to);
  // y = x (float32), where x is a tensor of `peer`, a backend of the same kind that the same thread uses: behaves as if
  // run after what the peer was given before this call, and before what it is given later. InvalidArgument: another
  // kind.
  absl::Status CopyFromPeer(Backend* peer, const DeviceTensor& x, const DeviceTensor& y);
  // Internal: the device cannot be asked.
  virtual absl::StatusOr<DeviceMemory> Memory() const = 0;
  // What operations take from that memory for themselves.
  virtual WorkspaceRules Workspace() const { return {}; }
  // What layers keep their outputs in, and the gradients of these: float32, or 16 bits if products take no more.
  ElementType ActivationType() const { return Workspace().activation_type; }
  // The elements of a float32 tensor if the host can read and write them, which saves the copies. Null on a device
  // with memory of its own.
  virtual float* HostPointer(const DeviceTensor& tensor) const = 0;

  // ---- order ----

  virtual absl::StatusOr<std::unique_ptr<Event>> Record() = 0;
  // Blocks until everything enqueued has finished.
  virtual absl::Status Synchronize() = 0;
  // Null if the device gains nothing by it.
  virtual std::unique_ptr<GraphReplay> NewGraphReplay() { return nullptr; }

  // ---- linear algebra ----

  // All elements become `value`.
  absl::Status Fill(float value, const DeviceTensor& y);
  // y = x. If their types differ, elements are rounded to nearest even; what is too large becomes infinite.
  absl::Status Copy(const DeviceTensor& x, const DeviceTensor& y);
  // y = a + b, activations. y may be a or b.
  absl::Status Add(const DeviceTensor& a, const DeviceTensor& b, const DeviceTensor& y);
  // y = a * b element by element, activations; with `accumulate` that is added to y. y may be a or b.
  absl::Status Multiply(const DeviceTensor& a, const DeviceTensor& b, bool accumulate, const DeviceTensor& y);
  // y += alpha * x.
  absl::Status Axpy(float alpha, const DeviceTensor& x, const DeviceTensor& y);
  // The range of each row of x becomes, or with `accumulate` is added to, that of y; the rest of y stays as it is. Rows
  // are along the first dimension, and there are as many of them.
  absl::Status CopyColumns(const ColumnRange& range, bool accumulate, const DeviceTensor& x, const DeviceTensor& y);
  // y *= factor, which is not 0.
  absl::Status Scale(float factor, const DeviceTensor& y);
  // sum (float64 [1]) = the sum of x's squares, or with `accumulate` that is added to it.
  absl::Status SumOfSquares(const DeviceTensor& x, bool accumulate, const DeviceTensor& sum);
  // y *= min(1, max_norm / sqrt(sum_of_squares)), max_norm > 0: what clips a gradient whose squares have this sum
  // (float64 [1]). A sum that is not finite leaves y as it is.
  absl::Status ScaleToNorm(float max_norm, const DeviceTensor& sum_of_squares, const DeviceTensor& y);
  // c = alpha * op(a) op(b) + beta * c, where op transposes or not. Each tensor is taken as a matrix of its first
  // dimension by all others. With beta 0, c may hold anything before. c may be float32.
  absl::Status Gemm(bool transpose_a, bool transpose_b, float alpha, const DeviceTensor& a, const DeviceTensor& b,
                    float beta, const DeviceTensor& c);
  // y [n, units] = x [n, inputs] * weight [units, inputs]^T, plus bias [units] if that is not empty.
  absl::Status Linear(const DeviceTensor& x, const DeviceTensor& weight, const DeviceTensor& bias,
                      const DeviceTensor& y);
  // dx and dbias may be empty when they are not needed. dweight is float32.
  absl::Status LinearBackward(const DeviceTensor& x, const DeviceTensor& weight, const DeviceTensor& dy,
                              bool accumulate, const DeviceTensor& dx, const DeviceTensor& dweight,
                              const DeviceTensor& dbias);
  // As Linear without bias and as its dweight, of some units: other columns of y and rows of dweight stay as they are.
  // x is not empty. OutOfRange: there are no such units.
  absl::Status LinearUnits(const UnitRange& units, const DeviceTensor& x, const DeviceTensor& weight,
                           const DeviceTensor& y);
  absl::Status LinearUnitsGradient(const UnitRange& units, const DeviceTensor& x, const DeviceTensor& dy,
                                   bool accumulate, const DeviceTensor& dweight);
  // y [n, channels, ...] += bias [channels].
  absl::Status AddBias(const DeviceTensor& bias, const DeviceTensor& y);
  // dbias [channels] = sum of dy [n, channels, ...] over all but channels.
  absl::Status BiasGradient(const DeviceTensor& dy, bool accumulate, const DeviceTensor& dbias);

  // ---- images ----

  // Shapes are the geometry's InputShape (x, dx), OutputShape (y, dy) and WeightShape (weight; dweight, float32).
  absl::Status Conv2d(const Conv2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& weight,
                      const DeviceTensor& y);
  absl::Status Conv2dBackwardData(const Conv2dGeometry& geometry, const DeviceTensor& dy, const DeviceTensor& weight,
                                  const DeviceTensor& dx);
  absl::Status Conv2dBackwardWeight(const Conv2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& dy,
                                    bool accumulate, const DeviceTensor& dweight);
  // `argmax` (int32, OutputShape) gets where in its channel's plane (row * width + column) each maximum was; the first
  // of equal ones. A window with a NaN gives NaN.
  absl::Status MaxPool2d(const Pool2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& y,
                         const DeviceTensor& argmax);
  absl::Status MaxPool2dBackward(const Pool2dGeometry& geometry, const DeviceTensor& dy, const DeviceTensor& argmax,
                                 const DeviceTensor& dx);
  absl::Status AveragePool2d(const Pool2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& y);
  absl::Status AveragePool2dBackward(const Pool2dGeometry& geometry, const DeviceTensor& dy, const DeviceTensor& dx);

  // ---- element by element, and along rows ----

  // y may be x.
  absl::Status Activate(Activation activation, const DeviceTensor& x, const DeviceTensor& y);
  // dx may be dy.
  absl::Status ActivateBackward(Activation activation, const DeviceTensor& x, const DeviceTensor& y,
                                const DeviceTensor& dy, const DeviceTensor& dx);
  // Its own backward operation, with dy for x. y may be x.
  absl::Status Dropout(const DropoutMask& mask, const DeviceTensor& x, const DeviceTensor& y);
  // Normalises each row of x, then y = gain * x_hat + bias (Ba, Kiros and Hinton 2016). `gain` and `bias` have a row's
  // elements; `mean` and `inverse_deviation` [n] are kept for the backward operation. epsilon is added to the variance.
  absl::Status LayerNorm(float epsilon, const DeviceTensor& x, const DeviceTensor& gain, const DeviceTensor& bias,
                         const DeviceTensor& y, const DeviceTensor& mean, const DeviceTensor& inverse_deviation);
  // dx may be dy, or empty when it is not needed. With add_to_dx its gradient is added to what dx has, and dx is not
  // dy.
  absl::Status LayerNormBackward(const DeviceTensor& x, const DeviceTensor& gain, const DeviceTensor& mean,
                                 const DeviceTensor& inverse_deviation, const DeviceTensor& dy, bool accumulate,
                                 bool add_to_dx, const DeviceTensor& dx, const DeviceTensor& dgain,
                                 const DeviceTensor& dbias);

  // Normalises, in each example of x [n, channels, ...], each group of channels / groups consecutive channels, then
  // y = gain * x_hat + bias with one gain and bias per channel (Wu and He 2018). `gain` and `bias` [channels]; `mean`
  // and `inverse_deviation` [n, groups] are kept for the backward operation. `groups` divides the channels.
  absl::Status GroupNorm(int64_t groups, float epsilon, const DeviceTensor& x, const DeviceTensor& gain,
                         const DeviceTensor& bias, const DeviceTensor& y, const DeviceTensor& mean,
                         const DeviceTensor& inverse_deviation);
  // dx may be dy, or empty when it is not needed.
  absl::Status GroupNormBackward(int64_t groups, const DeviceTensor& x, const DeviceTensor& gain,
                                 const DeviceTensor& mean, const DeviceTensor& inverse_deviation,
                                 const DeviceTensor& dy, bool accumulate, const DeviceTensor& dx,
                                 const DeviceTensor& dgain, const DeviceTensor& dbias);

  // ---- vectors side by side: x [n, vectors * width], two vectors or more ----

  // y [n, width + pairs] = the first vector, and then the dot product of each pair i > j of them: (1,0), (2,0), (2,1)
  // and so on (Naumov and others 2019).
  absl::Status DotInteraction(int64_t width, const DeviceTensor& x, const DeviceTensor& y);
  absl::Status DotInteractionBackward(int64_t width, const DeviceTensor& x, const DeviceTensor& dy,
                                      const DeviceTensor& dx);
  // y [n, 1] = the sum of these dot products (Rendle 2010).
  absl::Status FactorizationMachine(int64_t width, const DeviceTensor& x, const DeviceTensor& y);
  absl::Status FactorizationMachineBackward(int64_t width, const DeviceTensor& x, const DeviceTensor& dy,
                                            const DeviceTensor& dx);

  // ---- sequences ----

  // y [indices' shape, width] = for each of `indices` (int32) that row of table [entries, width]. Indices are in
  // [0, entries); others are undefined behaviour. At most 2^31 - 1 of them.
  absl::Status Embed(const DeviceTensor& table, const DeviceTensor& indices, const DeviceTensor& y);
  // dtable = for each row the sum, in order, of those rows of dy whose index it is. The same bits every time.
  absl::Status EmbedBackward(const DeviceTensor& indices, const DeviceTensor& dy, bool accumulate,
                             const DeviceTensor& dtable);
  // Multi-head self-attention in which a position sees itself and those before it (Vaswani et al. 2017): per example
  // and head, y = softmax(q k^T / sqrt(head_width)) v. Shapes are the geometry's InputShape (qkv, activations),
  // OutputShape (y) and LogSumExpShape. Memory grows with the sequence, not with its square: of the scores only
  // log_sum_exp, per row the logarithm of the sum of their exponentials, is kept (Dao et al. 2022).
  absl::Status CausalAttention(const AttentionGeometry& geometry, const DeviceTensor& qkv, const DeviceTensor& y,
                               const DeviceTensor& log_sum_exp);
  absl::Status CausalAttentionBackward(const AttentionGeometry& geometry, const DeviceTensor& qkv,
                                       const DeviceTensor& y, const DeviceTensor& log_sum_exp, const DeviceTensor& dy,
                                       const DeviceTensor& dqkv);

  // ---- losses ----

  // `sums` (float64 [2]) gets the sum of the examples' losses, and how many examples' largest logit was their class.
  // `dlogits` gets gradient_scale times the gradient of the sum; it may be logits, or empty when it is not needed.
  // classes (int32 [n]) are in [0, columns of logits); others are undefined behaviour.
  absl::Status SoftmaxCrossEntropy(const DeviceTensor& logits, const DeviceTensor& classes, float gradient_scale,
                                   const DeviceTensor& dlogits, const DeviceTensor& sums);
  // The same for logits [n, 1] of class 1, of classes 0 and 1. An example is correct if its logit is over 0 and its
  // class 1, or neither.
  absl::Status BinaryCrossEntropy(const DeviceTensor& logits, const DeviceTensor& classes, float gradient_scale,
                                  const DeviceTensor& dlogits, const DeviceTensor& sums);
  // The same for the mean of (output - target)^2 over an example's elements; the count is 0.
  absl::Status MeanSquaredError(const DeviceTensor& outputs, const DeviceTensor& targets, float gradient_scale,
                                const DeviceTensor& doutputs, const DeviceTensor& sums);

  // ---- updates ----

  // One update of `weights` by `rule`, with the bits that ReduceAndApply of kernels/optimizer gives them for this
  // gradient alone, but for those of NaN. The slots that the algorithm has (NumSlots) are changed too; others are
  // empty. All have one shape.
  absl::Status ApplyUpdate(const UpdateRule& rule, const DeviceTensor& gradient, const DeviceTensor& weights,
                           const DeviceTensor& first_slot, const DeviceTensor& second_slot);

  // ---- encoding ----

  // `encoded` (int32, at least MaxEncodedWords) begins with what Encode of kernels/codec writes for that range of
  // `values`, the same bytes on every device, but for which of several NaN TOP_K takes. `residual` [count] is as there;
  // empty if the codec keeps none. The codec is not NONE, and count < 2^31.
  absl::Status Encode(const EncodedRange& range, const DeviceTensor& values, const DeviceTensor& residual,
                      const DeviceTensor& encoded);

 private:
  // As the public methods of these names, with arguments that have been checked; `bytes` are the shape's. Some are
  // copied.
  virtual absl::StatusOr<DeviceTensor> DoAllocate(Shape shape, ElementType type, int64_t bytes) = 0;
  virtual absl::StatusOr<DeviceTensor> DoAllocateForSending(Shape shape, int64_t bytes) {
    return DoAllocate(std::move(shape), ElementType::kFloat32, bytes);
  }
  virtual absl::Status DoCopyToDevice(const DeviceTensor& to, int64_t offset, int64_t count, const void* from) = 0;
  virtual absl::Status DoCopyToHost(const DeviceTensor& from, int64_t offset, int64_t count, void* to) = 0;
  // `peer` has this backend's class.
  virtual absl::Status DoCopyFromPeer(Backend* peer, const DeviceTensor& x, const DeviceTensor& y) = 0;

  // What computes. Null: the device computes later, or never, and each operation goes to Defer instead.
  virtual Operations* operations() = 0;
  virtual absl::Status Defer(std::function<absl::Status(Operations&)> /*operation*/) { return absl::OkStatus(); }
  template <typename... Parameters, typename... Arguments>
  absl::Status Compute(absl::Status (Operations::*operation)(Parameters...), const Arguments&... arguments);
};

}  // namespace rubato

#endif  // RUBATO_KERNELS_BACKEND_H_
