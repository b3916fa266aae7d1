#include "core/handle.hpp"

#include <gtest/gtest.h>

#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep::core {
namespace {

std::vector<int> destroyed;

struct Counting {
  using Raw = int;
  static Raw null() noexcept { return -1; }
  static void destroy(Raw raw) noexcept { destroyed.push_back(raw); }
};
using Handle = UniqueHandle<Counting>;

static_assert(!std::is_copy_constructible_v<Handle> && !std::is_copy_assignable_v<Handle>);
static_assert(std::is_nothrow_move_constructible_v<Handle> && std::is_nothrow_move_assignable_v<Handle>);

class HandleTest : public testing::Test {
 protected:
  HandleTest() { destroyed.clear(); }
};

TEST_F(HandleTest, DestroysOnceAndNothingIfNull) {
  {
    const Handle null, seven{7};
    EXPECT_FALSE(null);
    EXPECT_TRUE(seven);
    EXPECT_EQ(seven.get(), 7);
  }
  EXPECT_EQ(destroyed, std::vector{7});
}

TEST_F(HandleTest, MoveConstructionHandsOver) {
  {
    Handle source{7};
    const Handle target{std::move(source)};
    EXPECT_FALSE(source);  // NOLINT(bugprone-use-after-move): a moved-from handle is null
    EXPECT_EQ(target.get(), 7);
    EXPECT_TRUE(destroyed.empty());
  }
  EXPECT_EQ(destroyed, std::vector{7});
}

TEST_F(HandleTest, MoveAssignmentDestroysTheOldValueAtOnce) {
  {
    Handle target{1}, source{2};
    target = std::move(source);
    EXPECT_EQ(destroyed, std::vector{1});
    EXPECT_EQ(target.get(), 2);
    EXPECT_FALSE(source);  // NOLINT(bugprone-use-after-move)
  }
  EXPECT_EQ(destroyed, (std::vector{1, 2}));
}

TEST_F(HandleTest, SelfMoveKeepsTheValue) {
  {
    Handle handle{7};
    Handle& same = handle;
    handle = std::move(same);
    EXPECT_EQ(handle.get(), 7);
    EXPECT_TRUE(destroyed.empty());
  }
  EXPECT_EQ(destroyed, std::vector{7});
}

TEST_F(HandleTest, SwapExchanges) {
  {
    Handle a{1}, b;
    a.swap(b);
    EXPECT_FALSE(a);
    EXPECT_EQ(b.get(), 1);
    EXPECT_TRUE(destroyed.empty());
  }
  EXPECT_EQ(destroyed, std::vector{1});
}

}  // namespace
}  // namespace lockstep::core
