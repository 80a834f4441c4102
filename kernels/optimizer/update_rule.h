#ifndef RUBATO_KERNELS_OPTIMIZER_UPDATE_RULE_H_
#define RUBATO_KERNELS_OPTIMIZER_UPDATE_RULE_H_

#include <cstdint>

#include "kernels/optimizer/update_formula.h"
#include "proto/job_config.pb.h"

namespace rubato {

// From what a config says to the numbers of one update. With g the gradient, w the weights and lr the learning rate:
//   SGD       w -= lr g
//   MOMENTUM  v = mu v + g; w -= lr v                                     (Polyak 1964)
//   NESTEROV  v = mu v + g; w -= lr (g + mu v)                            (Sutskever et al. 2013)
//   ADAGRAD   a = a + g^2; w -= lr g / (sqrt(a) + epsilon)                (Duchi, Hazan, Singer 2011)
//   RMSPROP   a = rho a + (1 - rho) g^2; w -= lr g / (sqrt(a) + epsilon)  (Tieleman and Hinton 2012)
//   ADAM      m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
//             w -= lr mhat / (sqrt(vhat) + epsilon), mhat = m / (1 - beta1^t), vhat = v / (1 - beta2^t)
//                                                                         (Kingma and Ba 2015)
//   ADAMW     w = (1 - lr decay) w, then as ADAM                          (Loshchilov and Hutter 2019)
//   MEAN      w = g
//   LARS      v = mu v + r (g + decay w); w -= lr v, r = trust_coefficient |w| / (|g| + decay |w|)
//                                                                         (You, Gitman, Ginsburg 2017)
//   LAMB      u = mhat / (sqrt(vhat) + epsilon) + decay w, m and v as in ADAM; w -= lr r u, r = |w| / |u|
//                                                                         (You et al. 2020)
// Norms are Euclidean, of the whole tensor; r is 1 if its numerator or its denominator is 0, and in tensors that do not
// decay. LARS has the rate outside of the velocity, as MOMENTUM; in the paper it is inside. Under MEAN weight decay and
// the learning rate mean nothing. Except under ADAMW and LAMB, weight decay is the gradient of an L2 penalty:
// g + decay w takes the place of g.

// The formula of a valid config's algorithm; the program ends for what is no algorithm.
UpdateFormula FormulaOf(v1::OptimizerConfig::Algorithm algorithm);

// Arrays of optimizer state, each as long as the weights.
inline int NumSlots(v1::OptimizerConfig::Algorithm algorithm) { return NumSlots(FormulaOf(algorithm)); }

// What every element of slot `slot` starts with: initial_accumulator in the first of an algorithm that takes it, 0
// otherwise.
float InitialSlotValue(const v1::OptimizerConfig& config, int slot);

// `config` is valid (common/config); optional fields that are absent have their defaults (common/optimizer_traits.h).
// `learning_rate` is the rate now, with the schedule's and the plan's factors. `update` counts the updates of the chunk
// from 1, this one included (t above). `decays` is TensorSpec::decays. A rule whose trust_ratio is not kNone is for
// ApplyWithTrustRatio, all others for ReduceAndApply. Pure.
UpdateRule MakeUpdateRule(const v1::OptimizerConfig& config, double learning_rate, int64_t update, bool decays);

}  // namespace rubato

#endif  // RUBATO_KERNELS_OPTIMIZER_UPDATE_RULE_H_
