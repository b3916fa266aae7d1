// Dropout's kernel has the masks of the host's loops, which this file includes for that.
#include <gtest/gtest.h>

#include "nn/host/loops.cpp"
#include "nn/ops/dropout/kernels.hpp"
#include "unit/kernels/nn_cuda.hpp"

namespace lockstep::nn::cuda {
namespace {

const host::Loops host_loops = host::these_loops;

template <class T>
class DropoutKernels : public ::testing::Test {};
TYPED_TEST_SUITE(DropoutKernels, ElementTypes);

TYPED_TEST(DropoutKernels, HaveTheMasksOfTheHost) {
  constexpr std::uint64_t seed = 0x123456789abcdefULL;
  constexpr std::uint32_t node = 5, threshold = 0x4ccccccc;
  test::Reachable<core::StepNumbers> numbers;
  numbers->epoch = 0x700000003ULL;
  const auto block = core::philox({0x89abcdef, 0x01234567}, {3, 7, 0x64726f70, 0});
  const Vector<std::uint64_t> ids{4, 0xfeedULL << 32U, 77};
  for (const auto& [n_positions, channels, n_logical, has_rows] :
       {std::tuple<std::size_t, std::size_t, std::size_t, bool>{1, 24, 21, false},
        {6, 16, 13, false},
        {49, 8, 8, false},
        {1, 24, 21, true},
        {6, 16, 13, true},
        {5, 16, 12, true}}) {
    const auto x = random_rows<TypeParam>(ids.size() * n_positions, channels, n_logical, 1, 2, 0.1F);
    Vector<TypeParam> out(x.size());
    expect_same_in_all_orders(
        [&, positions = n_positions, width = channels, row = has_rows ? n_logical : 0](Runner run) {
          run(DropElements<TypeParam>{ids.size(), positions, width, x.data(), out.data(), ids.data(), numbers.get(),
                                      seed, node, threshold, 1.25F, row});
          return bytes_of(out);
        });
    std::size_t n_kept = 0;
    for (std::size_t sample = 0; sample < ids.size(); ++sample) {
      Vector<std::uint8_t> mask((n_logical * n_positions + 3) / 4 * 4);
      host_loops.draw_mask({{block[0], block[1]}, node, ids[sample], threshold}, mask.data(), n_logical * n_positions);
      for (std::size_t p = 0; p < n_positions; ++p) {
        for (std::size_t c = 0; c < channels; ++c) {
          const std::size_t at = (sample * n_positions + p) * channels + c;
          const bool is_kept = c < n_logical && mask[has_rows ? p * n_logical + c : c * n_positions + p] != 0;
          n_kept += is_kept ? 1 : 0;
          ASSERT_EQ(number(out[at]), is_kept ? number(round_to<TypeParam>(to_float(x[at]) * 1.25F)) : 0);
        }
      }
    }
    EXPECT_NEAR(static_cast<double>(n_kept) / static_cast<double>(3 * n_positions * n_logical), 0.7, 0.15);
  }
}

}  // namespace
}  // namespace lockstep::nn::cuda
