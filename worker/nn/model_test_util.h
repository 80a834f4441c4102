#ifndef RUBATO_WORKER_NN_MODEL_TEST_UTIL_H_
#define RUBATO_WORKER_NN_MODEL_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "worker/nn/model.h"

namespace rubato::worker {

// A model on a CPU backend with initial weights, and what tests do with it. Errors fail the test.
class TestModel {
 public:
  // `config` is a ModelConfig as text. Also gives biases, and the weights of norms, random values.
  TestModel(const std::string& config, int64_t max_batch, uint64_t seed);

  Model& operator*() { return *model_; }
  Model* operator->() { return model_.get(); }
  Backend& backend() { return *backend_; }

  float* weight(int tensor) { return backend_->HostPointer(model_->weight(tensor)); }
  float* gradient(int tensor) { return backend_->HostPointer(model_->gradient(tensor)); }
  int tensors() const { return static_cast<int>(model_->spec().tensors.size()); }

  // The whole forward pass and the loss of the batch that was set.
  LossResult Forward(bool training, uint64_t dropout_stream, float gradient_scale);
  void Backward(bool accumulate);
  // w -= learning_rate * gradient.
  void SgdStep(float learning_rate);

 private:
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Model> model_;
};

#define ASSERT_OK(expression)                               \
  do {                                                      \
    absl::Status assert_ok_status = (expression);           \
    ASSERT_TRUE(assert_ok_status.ok()) << assert_ok_status; \
  } while (false)

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_NN_MODEL_TEST_UTIL_H_
