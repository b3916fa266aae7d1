#include "core/loop_sets.hpp"

#include <gtest/gtest.h>

namespace lockstep::core {
namespace {

struct Numbered {
  LoopSet set;

  template <LoopSet of>
  static const Numbered& version() noexcept {
    static const Numbered numbered{of};
    return numbered;
  }
};

TEST(LoopSets, AreThoseOfTheProcessorAndTheWidestIsLast) {
  const auto available = available_loops<Numbered>();
  const InstructionSets sets = instruction_sets();
  ASSERT_EQ(available.size(), 1U + (sets.avx2 ? 1U : 0U) + (sets.avx512 ? 1U : 0U));
  for (std::size_t i = 0; i < available.size(); ++i) EXPECT_EQ(available[i]->set, static_cast<LoopSet>(i));
  EXPECT_EQ(name(available.back()->set), widest(sets));
}

}  // namespace
}  // namespace lockstep::core
