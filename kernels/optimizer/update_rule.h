#ifndef RUBATO_KERNELS_OPTIMIZER_UPDATE_RULE_H_
#define RUBATO_KERNELS_OPTIMIZER_UPDATE_RULE_H_

#include <cstdint>

#include "proto/job_config.pb.h"

namespace rubato {

// Arrays of optimizer state, each as long as the weights: SGD 0; momentum, Nesterov, AdaGrad and RMSProp 1; Adam and
// AdamW 2 (first moment, then second).
int NumSlots(v1::OptimizerConfig::Algorithm algorithm);

// What every element of slot `slot` starts with: initial_accumulator for AdaGrad, 0 otherwise.
float InitialSlotValue(const v1::OptimizerConfig& config, int slot);

// One update of one chunk: the config's numbers resolved for this moment, in single precision. Plain data.
//
// With g the gradient, w the weights and lr the learning rate:
//   SGD       w -= lr g
//   MOMENTUM  v = mu v + g; w -= lr v                                     (Polyak 1964)
//   NESTEROV  v = mu v + g; w -= lr (g + mu v)                            (Sutskever et al. 2013)
//   ADAGRAD   a = a + g^2; w -= lr g / (sqrt(a) + epsilon)                (Duchi, Hazan, Singer 2011)
//   RMSPROP   a = rho a + (1 - rho) g^2; w -= lr g / (sqrt(a) + epsilon)  (Tieleman and Hinton 2012)
//   ADAM      m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
//             w -= lr mhat / (sqrt(vhat) + epsilon), mhat = m / (1 - beta1^t), vhat = v / (1 - beta2^t)
//                                                                         (Kingma and Ba 2015)
//   ADAMW     w = (1 - lr decay) w, then as ADAM                          (Loshchilov and Hutter 2019)
// Except under ADAMW, weight decay is the gradient of an L2 penalty: g + decay w takes the place of g.
struct UpdateRule {
  v1::OptimizerConfig::Algorithm algorithm = v1::OptimizerConfig::SGD;
  // The learning rate now. ADAM, ADAMW: divided by 1 - beta1^t.
  float learning_rate = 0;
  float momentum = 0;
  // Decay of the first moment and its complement. Complements are rounded once, from double precision.
  float beta1 = 0;
  float beta1_complement = 1;
  // Decay of the second moment (RMSPROP: rho) and its complement.
  float beta2 = 0;
  float beta2_complement = 1;
  float epsilon = 0;
  // ADAM, ADAMW: 1 / sqrt(1 - beta2^t).
  float second_moment_scale = 1;
  // Added to the gradient times the weight. 0 under ADAMW.
  float l2 = 0;
  // ADAMW: the weights are multiplied by this first.
  float shrink = 1;
};

// `config` is valid (common/config); optional fields that are absent have the defaults of their comments.
// `learning_rate` is the rate now, with the schedule's and the plan's factors. `update` counts the updates of the chunk
// from 1, this one included (t above). `decays` is TensorSpec::decays. Pure.
UpdateRule MakeUpdateRule(const v1::OptimizerConfig& config, double learning_rate, int64_t update, bool decays);

}  // namespace rubato

#endif  // RUBATO_KERNELS_OPTIMIZER_UPDATE_RULE_H_
