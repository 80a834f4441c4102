#include "kernels/cpu/conv2d.h"

namespace rubato::cpu {

std::unique_ptr<Conv2d> NewConv2d(int threads) { return NewIm2colConv2d(threads); }

}  // namespace rubato::cpu
