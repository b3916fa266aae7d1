#include "training/recipe/resume_promise.hpp"

#include <gtest/gtest.h>

#include "runtime/gpu_choice.hpp"

namespace lockstep::training {
namespace {

Recipe dealt_to(std::uint64_t lanes) { return {.model = "toy", .batch = 64, .deterministic = true, .lanes = lanes}; }

TEST(ResumePromise, OtherRanksAreFewerIfThereAreSome) {
  EXPECT_EQ(other_ranks(dealt_to(4), 4), 2);
  EXPECT_EQ(other_ranks(dealt_to(4), 2), 1);
  EXPECT_EQ(other_ranks(dealt_to(4), 1), 2);
  EXPECT_EQ(other_ranks(dealt_to(8), 8), 4);
  EXPECT_EQ(other_ranks(dealt_to(1), 1), 0);
}

TEST(ResumePromise, IsWhatRecipeAndDeviceAllow) {
  Recipe by_rank = dealt_to(4);
  by_rank.order = data::Order::torch;
  Recipe on_gpu = dealt_to(4);
  on_gpu.device = runtime::traits_of(runtime::DeviceKind::cuda);
  Recipe usual = dealt_to(4);
  usual.deterministic = false;
  const struct {
    Recipe recipe;
    int n_ranks;
    SameBits same_bits;
    const char* text;
  } rows[] = {
      {dealt_to(4), 2, SameBits::any_ranks,
       "bit-identical to an uninterrupted run, on any number of ranks that divides the 4 lanes"},
      {dealt_to(1), 1, SameBits::same_ranks, "bit-identical to an uninterrupted run, but only on 1 rank"},
      {by_rank, 1, SameBits::same_ranks, "bit-identical to an uninterrupted run, but only on 1 rank"},
      {on_gpu, 2, SameBits::same_ranks,
       "bit-identical to an uninterrupted run, but only on 2 ranks with GPUs of the same kind"},
      {usual, 2, SameBits::none,
       "may differ in the last bits from an uninterrupted run, because the order of sums is not fixed; --deterministic "
       "makes it bit-identical"},
  };
  for (const auto& row : rows) {
    const ResumePromise promise = resume_promise(row.recipe, row.n_ranks);
    EXPECT_EQ(name(promise.same_bits), name(row.same_bits)) << row.text;
    EXPECT_EQ(promise.text, row.text);
  }
}

TEST(ResumePromise, IsNoneForARunThatHasChangedWhatBitsDependOn) {
  const ResumePromise one = resume_promise(dealt_to(8), 1, {{"lanes", "4", "8"}});
  EXPECT_EQ(one.same_bits, SameBits::none);
  EXPECT_EQ(one.text, "may differ in the last bits from an uninterrupted run, because lanes was 4, and is now 8");
  const ResumePromise two = resume_promise(dealt_to(8), 1, {{"lanes", "4", "8"}, {"accumulate", "1", "2"}});
  EXPECT_EQ(two.text,
            "may differ in the last bits from an uninterrupted run, because lanes was 4, and is now 8; 1 more changed");
}

}  // namespace
}  // namespace lockstep::training
