// How fast codecs are on one core: chunks of 4 MiB of float32, one after another over 64 MiB so that they come from
// memory, against a memcpy of the same chunks in the same run. GB/s counts the float32 bytes.
//
//   bazel run //bench:codec_bench -- --isa=all --rounds=15

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/bench_output.h"
#include "bench/bench_timing.h"
#include "bench/loop_bench.h"
#include "kernels/codec/codec.h"

namespace rubato::bench {
namespace {

constexpr int64_t kChunk = int64_t{1} << 20;
constexpr int64_t kChunks = 16;

constexpr CodecSpec kSpecs[] = {{v1::NONE}, {v1::BF16}, {v1::FP16}, {v1::INT8}, {v1::TOP_K, 0.01}, {v1::ONE_BIT}};

// 64 MiB of elements, and room for what a codec makes of them.
struct Buffers {
  explicit Buffers(const CodecSpec& spec)
      : stride(MaxEncodedBytes(spec, kChunk)),
        residual(HasResidual(spec.codec) ? kChunk * kChunks : 0, 0.0f),
        encoded(stride * kChunks) {}

  const int64_t stride;
  std::vector<float> residual;
  std::vector<uint8_t> encoded;
};

// The elements of all codecs, and where they are decoded to.
struct Elements {
  std::vector<float> values = NormalValues(kChunk * kChunks, 1);
  std::vector<float> decoded = std::vector<float>(kChunk * kChunks, 0.0f);
};

void EncodeChunk(Isa isa, const CodecSpec& spec, const Elements& elements, Buffers& buffers, int64_t chunk) {
  float* residual = HasResidual(spec.codec) ? buffers.residual.data() + chunk * kChunk : nullptr;
  EncodeOn(isa, spec, elements.values.data() + chunk * kChunk, kChunk, residual, 1, chunk,
           buffers.encoded.data() + chunk * buffers.stride);
}

void DecodeChunk(Isa isa, const CodecSpec& spec, Elements& elements, const Buffers& buffers, int64_t chunk) {
  DecodeRangeOn(isa, spec.codec, buffers.encoded.data() + chunk * buffers.stride, buffers.stride, kChunk, 0, kChunk,
                elements.decoded.data() + chunk * kChunk);
}

std::function<void()> OverChunks(std::function<void(int64_t chunk)> function) {
  return [function = std::move(function)] {
    for (int64_t chunk = 0; chunk < kChunks; ++chunk) function(chunk);
  };
}

// What is measured: names and functions side by side.
struct Cases {
  void Add(std::string name, std::function<void(int64_t chunk)> function) {
    names.push_back(std::move(name));
    functions.push_back(OverChunks(std::move(function)));
  }
  std::vector<std::string> names;
  std::vector<std::function<void()>> functions;
};

void AddCodec(Isa isa, const CodecSpec& spec, Elements& elements, Buffers& buffers, Cases& cases) {
  const std::string name = absl::StrCat(v1::Codec_Name(spec.codec), "/", IsaName(isa), "/");
  const auto encode = [=, &elements, &buffers](int64_t chunk) { EncodeChunk(isa, spec, elements, buffers, chunk); };
  const auto decode = [=, &elements, &buffers](int64_t chunk) { DecodeChunk(isa, spec, elements, buffers, chunk); };
  cases.Add(name + "encode", encode);
  cases.Add(name + "decode", decode);
  cases.Add(name + "encode_decode", [=](int64_t chunk) {
    encode(chunk);
    decode(chunk);
  });
}

void Run(const std::vector<Isa>& isas, int rounds) {
  Elements elements;
  Cases cases;
  cases.Add("memcpy", [&elements](int64_t chunk) {
    std::memcpy(elements.decoded.data() + chunk * kChunk, elements.values.data() + chunk * kChunk,
                sizeof(float) * kChunk);
  });
  std::vector<std::unique_ptr<Buffers>> buffers;
  for (const CodecSpec& spec : kSpecs) {
    buffers.push_back(std::make_unique<Buffers>(spec));
    for (Isa isa : isas) AddCodec(isa, spec, elements, *buffers.back(), cases);
  }

  const std::vector<std::vector<double>> times = TimeInterleaved(cases.functions, rounds);
  const double bytes = sizeof(float) * kChunk * kChunks;
  std::vector<BenchCase> results;
  for (size_t i = 0; i < times.size(); ++i) {
    const double seconds = Median(times[i]);
    results.push_back({cases.names[i],
                       {{"bytes", bytes},
                        {"seconds", seconds},
                        {"gb_per_s", bytes / seconds / 1e9},
                        {"memcpy_gb_per_s", bytes / Median(times[0]) / 1e9},
                        {"ratio", MedianRatio(times[0], times[i])}}});
  }
  PrintCases(results);
}

}  // namespace
}  // namespace rubato::bench

int main(int argc, char** argv) {
  return rubato::bench::LoopBenchMain(
      argc, argv, {"codec_bench", "Rates of the codecs against memcpy", 15, rubato::BestIsa(), rubato::bench::Run});
}
