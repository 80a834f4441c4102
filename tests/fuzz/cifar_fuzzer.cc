// A file in CIFAR-10's format: what is accepted are whole records that can all be read, with classes of the model.
//
// Input: the file, then one byte: its lowest bit cuts the file in two, read one after the other.
#include "proto/job_config.pb.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/image_files.h"
#include "tests/fuzz/memory_file.h"
#include "worker/data/open_dataset.h"

namespace rubato {
namespace {

constexpr int32_t kClasses = 10;
constexpr size_t kRecord = 3073;

}  // namespace
}  // namespace rubato

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rubato;
  Trailer trailer(data, size);
  const bool two = (trailer.TakeByte() & 1) != 0;
  const std::string all = trailer.Rest();
  const size_t first_bytes = two && all.size() > kRecord ? kRecord : all.size();
  const MemoryFile first(all.substr(0, first_bytes)), second(all.substr(first_bytes));
  v1::JobConfig config;
  v1::CifarData* cifar = config.mutable_data()->mutable_cifar();
  cifar->add_train_paths(first.path());
  if (two) cifar->add_train_paths(second.path());
  cifar->add_mean(0);
  cifar->add_standard_deviation(1);
  const ModelSpec model = ImageModel({3, 32, 32}, kClasses);
  const absl::StatusOr<std::shared_ptr<const worker::Dataset>> dataset =
      worker::OpenDataset(config, model, worker::Split::kTrain);
  if (!dataset.ok()) return 0;
  RUBATO_FUZZ_CHECK((*dataset)->size() > 0, (*dataset)->size());
  ReadImages(**dataset, model);
  return 0;
}
