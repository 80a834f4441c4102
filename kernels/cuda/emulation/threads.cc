#include "kernels/cuda/emulation/threads.h"

#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace rubato::cuda::emulation {
namespace {

constexpr int kWarp = 32;
constexpr size_t kStackBytes = 256 << 10;

// What a sanitizer has to know of a stack: it is told whenever another one is run on.
#if defined(__SANITIZE_ADDRESS__)
struct Stack {
  void Begin(const void* memory, size_t bytes) {
    begin = memory;
    size = bytes;
  }
  void Leave(const Stack& to) { __sanitizer_start_switch_fiber(&fake, to.begin, to.size); }
  // `from`, if that is given, becomes what was left.
  void Enter(Stack* from) {
    __sanitizer_finish_switch_fiber(fake, from == nullptr ? nullptr : &from->begin,
                                    from == nullptr ? nullptr : &from->size);
  }
  const void* begin = nullptr;
  size_t size = 0;
  void* fake = nullptr;
};
#elif defined(__SANITIZE_THREAD__)
struct Stack {
  void Begin(const void*, size_t) { fiber = __tsan_create_fiber(0); }
  void Leave(const Stack& to) {
    fiber = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(to.fiber, 0);
  }
  void Enter(Stack*) {}
  void* fiber = nullptr;
};
#else
struct Stack {
  void Begin(const void*, size_t) {}
  void Leave(const Stack&) {}
  void Enter(Stack*) {}
};
#endif

// Where a stack has been left, or where it begins.
struct Context {
  ucontext_t begin;
  bool begun = true;
  void* left[5];
};

// swapcontext asks the kernel for the signal mask each time, which takes longer than most threads have work; and a
// sanitizer's longjmp knows one stack alone. So does what AddressSanitizer does before a call that does not return.
[[noreturn]] __attribute__((noinline, no_sanitize("address", "thread"))) void GoOn(Context* to) {
  if (std::exchange(to->begun, true)) __builtin_longjmp(to->left, 1);
  setcontext(&to->begin);
  std::abort();
}

// Goes on in `to`, until somebody goes on in `from`.
__attribute__((noinline, no_sanitize("address", "thread"))) void Switch(Context* from, Context* to) {
  if (__builtin_setjmp(from->left) == 0) GoOn(to);
}

// A stack that threads run on, one after the other while none of them waits.
struct Fiber {
  Context context;
  std::unique_ptr<char[]> memory{new char[kStackBytes]};
  Stack stack;
  bool begun = false;
  Place place;
  int thread = 0;
  enum class Waits { kNot, kForWarp, kForBlock } waits = Waits::kNot;
};

class Runner {
 public:
  void Run(const char* kernel, dim3 blocks, dim3 threads, const std::function<void()>& body);
  void Await(Fiber::Waits what);
  Exchange AwaitWarp(uint64_t value);
  const Place& here() const { return running_->place; }

 private:
  void RunBlock(uint3 block);
  // Threads that need wait no longer: all, or those of one warp; none if others do not come.
  std::vector<Fiber*> Released();
  Fiber* Idle();
  void Resume(Fiber* fiber);
  void Suspend();
  // What a fiber does: threads, as long as there are any, then nothing until the next block.
  void Work();
  static void Enter();

  const char* kernel_ = nullptr;
  const std::function<void()>* body_ = nullptr;
  dim3 blocks_, threads_;
  uint3 block_ = {};
  int count_ = 0;           // Threads in a block.
  std::vector<int> order_;  // Of the threads.
  // A warp goes on for as long as it can, before others do; or all go on side by side.
  bool warps_run_ahead_ = false;
  int begun_ = 0, done_ = 0;
  // Of each thread: its calls of AwaitWarp. Of each warp: what its lanes gave in this call and the one before, which
  // slower lanes may still read.
  std::vector<int> exchanges_;
  std::vector<std::array<std::array<uint64_t, kWarp>, 2>> warps_;

  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_, waiting_;
  Fiber* running_ = nullptr;
  Context scheduler_;
  std::minstd_rand random_;
  Stack scheduler_stack_;
};

Runner& TheRunner() {
  static auto* const runner = new Runner();
  return *runner;
}

void Runner::Run(const char* kernel, dim3 blocks, dim3 threads, const std::function<void()>& body) {
  kernel_ = kernel;
  body_ = &body;
  blocks_ = blocks;
  threads_ = threads;
  count_ = static_cast<int>(threads.x * threads.y * threads.z);
  order_.resize(count_);
  std::iota(order_.begin(), order_.end(), 0);
  switch (random_() % 3) {
    case 0:
      break;
    case 1:
      std::reverse(order_.begin(), order_.end());
      break;
    default:
      std::shuffle(order_.begin(), order_.end(), random_);
  }
  warps_run_ahead_ = random_() % 2 == 0;
  for (unsigned z = 0; z < blocks.z; ++z) {
    for (unsigned y = 0; y < blocks.y; ++y) {
      for (unsigned x = 0; x < blocks.x; ++x) RunBlock({x, y, z});
    }
  }
}

void Runner::RunBlock(uint3 block) {
  block_ = block;
  begun_ = done_ = 0;
  exchanges_.assign(count_, 0);
  warps_.resize((count_ + kWarp - 1) / kWarp);
  for (;;) {
    const bool all_begun = begun_ == count_;
    if (all_begun && done_ == count_) return;
    const std::vector<Fiber*> released = all_begun || warps_run_ahead_ ? Released() : std::vector<Fiber*>();
    if (released.empty() && !all_begun) {
      Resume(Idle());
      continue;
    }
    if (released.empty()) {
      std::fprintf(stderr, "%s: %zu threads of block %u %u %u wait for others, of which %d have ended\n", kernel_,
                   waiting_.size(), block.x, block.y, block.z, done_);
      std::abort();
    }
    for (Fiber* fiber : released) Resume(fiber);
  }
}

std::vector<Fiber*> Runner::Released() {
  int at_block = 0;
  std::vector<int> at_warp(warps_.size());
  for (const Fiber* fiber : waiting_) {
    at_block += fiber->waits == Fiber::Waits::kForBlock;
    at_warp[fiber->thread / kWarp] += fiber->waits == Fiber::Waits::kForWarp;
  }
  for (Fiber* fiber : waiting_) {
    const int warp = fiber->thread / kWarp;
    const bool comes = fiber->waits == Fiber::Waits::kForBlock
                           ? at_block == count_
                           : at_warp[warp] == std::min(kWarp, count_ - warp * kWarp);
    if (comes) fiber->waits = Fiber::Waits::kNot;
  }
  int ahead = -1;
  if (warps_run_ahead_) {
    for (const Fiber* fiber : waiting_) {
      if (fiber->waits == Fiber::Waits::kNot) ahead = std::max(ahead, fiber->thread / kWarp);
    }
  }
  const auto goes_on = [&](const Fiber* fiber) {
    return fiber->waits == Fiber::Waits::kNot && (!warps_run_ahead_ || fiber->thread / kWarp == ahead);
  };
  const auto rest = std::stable_partition(waiting_.begin(), waiting_.end(), goes_on);
  std::vector<Fiber*> released(waiting_.begin(), rest);
  waiting_.erase(waiting_.begin(), rest);
  return released;
}

Fiber* Runner::Idle() {
  if (idle_.empty()) {
    fibers_.push_back(std::make_unique<Fiber>());
    idle_.push_back(fibers_.back().get());
  }
  Fiber* fiber = idle_.back();
  idle_.pop_back();
  return fiber;
}

void Runner::Resume(Fiber* fiber) {
  if (!fiber->begun) {
    fiber->begun = true;
    getcontext(&fiber->context.begin);
    fiber->stack.Begin(fiber->memory.get(), kStackBytes);
    fiber->context.begin.uc_stack.ss_sp = fiber->memory.get();
    fiber->context.begin.uc_stack.ss_size = kStackBytes;
    fiber->context.begin.uc_link = nullptr;
    makecontext(&fiber->context.begin, &Runner::Enter, 0);
    fiber->context.begun = false;
  }
  running_ = fiber;
  fiber->waits = Fiber::Waits::kNot;
  scheduler_stack_.Leave(fiber->stack);
  Switch(&scheduler_, &fiber->context);
  scheduler_stack_.Enter(nullptr);
}

void Runner::Suspend() {
  Fiber* const fiber = running_;
  fiber->stack.Leave(scheduler_stack_);
  Switch(&fiber->context, &scheduler_);
  fiber->stack.Enter(&scheduler_stack_);
}

void Runner::Enter() {
  Runner& runner = TheRunner();
  runner.running_->stack.Enter(&runner.scheduler_stack_);
  runner.Work();
}

void Runner::Work() {
  for (;;) {
    Fiber* const fiber = running_;
    while (begun_ < count_) {
      const auto thread = static_cast<unsigned>(order_[begun_++]);
      fiber->thread = static_cast<int>(thread);
      fiber->place = {
          .thread = {thread % threads_.x, thread / threads_.x % threads_.y, thread / threads_.x / threads_.y},
          .block = block_,
          .threads = threads_,
          .blocks = blocks_};
      (*body_)();
      ++done_;
    }
    idle_.push_back(fiber);
    Suspend();
  }
}

void Runner::Await(Fiber::Waits what) {
  running_->waits = what;
  waiting_.push_back(running_);
  Suspend();
}

Exchange Runner::AwaitWarp(uint64_t value) {
  const int thread = running_->thread, lane = thread % kWarp;
  // A lane is at most one call ahead of the others, so what they still read is in the other half.
  auto& values = warps_[thread / kWarp][exchanges_[thread]++ % 2];
  values[lane] = value;
  Await(Fiber::Waits::kForWarp);
  return {.lane = lane, .values = values.data()};
}

}  // namespace

const Place& Here() { return TheRunner().here(); }

void RunThreads(const char* kernel, dim3 blocks, dim3 threads, const std::function<void()>& body) {
  TheRunner().Run(kernel, blocks, threads, body);
}

void AwaitBlock() { TheRunner().Await(Fiber::Waits::kForBlock); }

Exchange AwaitWarp(uint64_t value) { return TheRunner().AwaitWarp(value); }

}  // namespace rubato::cuda::emulation
