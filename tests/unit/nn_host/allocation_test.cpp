#include <dlfcn.h>
#include <dnnl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "nn/graph/models.hpp"
#include "unit/nn_host/harness.hpp"

namespace {

std::atomic<bool> is_counting = false;
std::atomic<std::size_t> n_ours = 0;        // allocations not made within oneDNN
std::atomic<std::size_t> largest_dnnl = 0;  // bytes of the largest made there

void count(std::size_t n, void* caller) {
  if (!is_counting) return;
  Dl_info info{};
  const bool is_dnnl = dladdr(caller, &info) != 0 && std::strstr(info.dli_fname, "libdnnl") != nullptr;
  if (!is_dnnl) ++n_ours;
  if (is_dnnl && n > largest_dnnl) largest_dnnl = n;
}

void* allocate(std::size_t n, std::size_t alignment) {
  void* const memory = std::aligned_alloc(alignment, (n + alignment) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc{};
  return memory;
}

}  // namespace

// The other forms call these.
[[gnu::noinline]] void* operator new(std::size_t n) {
  count(n, __builtin_return_address(0));
  return allocate(n, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new(std::size_t n, std::align_val_t alignment) {
  count(n, __builtin_return_address(0));
  return allocate(n, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  count(n, __builtin_return_address(0));
  return std::malloc(n);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace lockstep::nn::host {
namespace {

constexpr bool loops_allocate = LOCKSTEP_KOKKOS_MAJOR >= 4;

/// Counts while it lives.
class Counting {
 public:
  Counting() {
    n_ours = 0;
    largest_dnnl = 0;
    is_counting = true;
  }
  ~Counting() { is_counting = false; }
};

void step(Harness& harness, std::uint64_t n, bool accumulate) {
  harness.forward(harness.samples.batch(0, n));
  harness.backward(1, accumulate);
  harness.forward(harness.samples.batch(0, n), false);
}

std::vector<std::pair<Case, Precision>> model_cases_in_all_precisions() {
  std::vector<std::pair<Case, Precision>> cases;
  for (const Case& given : model_cases()) {
    if (given.name == "resnet50") continue;  // all its layers are in resnet18, and it has a test of its own
    for (const Precision precision : precisions()) cases.emplace_back(given, precision);
  }
  return cases;
}

TEST(HostSteadySteps, AllocateNothing) {
  if (loops_allocate) GTEST_SKIP() << "loops of Kokkos 4 allocate";
  {
    const Counting counting;
    void* volatile memory = ::operator new(1);  // volatile: never optimized away
    ::operator delete(memory);
  }
  ASSERT_EQ(n_ours, 1u) << "an allocation is not seen";
  for (const auto& [given, precision] : model_cases_in_all_precisions()) {
    Harness harness{given, options_of(given, precision)};
    for (int i = 0; i < 2; ++i)
      for (const std::uint64_t n : {given.batch.n, given.batch.n - 1}) step(harness, n, i > 0);
    {
      const Counting counting;
      for (const std::uint64_t n : {given.batch.n, given.batch.n - 1, given.batch.n})
        for (const bool accumulate : {false, true}) step(harness, n, accumulate);
    }
    EXPECT_EQ(n_ours, 0u) << given.name;
    EXPECT_LT(largest_dnnl, 4096u) << given.name << ": more than the bookkeeping of a call";
  }
}

// As above, with batch normalization over the samples of several ranks.
TEST(HostSteadySteps, AllocateNothingOfGroups) {
  if (loops_allocate) GTEST_SKIP() << "loops of Kokkos 4 allocate";
  const Case given = model_case("resnet18_cifar");
  ExecutorOptions options = options_of(given);
  options.is_group_of_ranks = true;
  Harness harness{given, options};
  harness.on_sum = [](std::span<double>) {};
  for (int i = 0; i < 2; ++i) step(harness, given.batch.n, i > 0);
  {
    const Counting counting;
    step(harness, given.batch.n, true);
  }
  EXPECT_EQ(n_ours, 0u);
}

/// Exceptions: the maps where matrix products begin, in float32. Their two readers take them, and return their
/// gradients, with channels last. And oneDNN 3 takes MNIST's image in bf16 with channels last but not its results: few
/// weights, the map between two convolutions and its gradient. A step with them is no longer than oneDNN 2's (17.0,
/// 17.6 ms on a Zen 4).
std::size_t most_reorders(const Case& given, Precision precision) {
  const bool is_float = precision == Precision::f32;
  if (given.name.starts_with("resnet")) return is_float ? 4 : 0;
  return given.name.starts_with("mnist") && !is_float && dnnl_version()->major > 2 ? 3 : 0;
}

TEST(HostSteadySteps, ReorderNothing) {
  if (!has_avx512()) GTEST_SKIP() << "oneDNN's layouts for other processors are not ours to change";
  for (const auto& [given, precision] : model_cases_in_all_precisions()) {
    Harness harness{given, options_of(given, precision)};
    harness.forward();
    harness.backward();
    EXPECT_LE(harness.executor.n_reorders(), most_reorders(given, precision)) << given.name;
  }
}

// Five channels are neither an image nor whole blocks: oneDNN needs other layouts, and the count shows that.
TEST(HostSteadySteps, CountReorders) {
  if (!has_avx512()) GTEST_SKIP() << "oneDNN may take them as they are here";
  Network net;
  net.global_avg_pool(net.conv("conv1", net.input({5, 8, 8}), {.n_out = 32, .kernel = 3}));
  Harness harness{make_case(net, 2, Loss::cross_entropy)};
  harness.forward();
  EXPECT_GE(harness.executor.n_reorders(), 1u);
}

}  // namespace
}  // namespace lockstep::nn::host
