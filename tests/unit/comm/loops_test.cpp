#include "comm/loops.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "core/error.hpp"
#include "loops_oracle.hpp"

namespace lockstep::comm {
namespace {

using core::bfloat16;
using core::DType;
using core::float16;
using test::Guarded;
using test::holds;
using test::Inputs;
using test::is_same;

constexpr std::size_t sizes[] = {0, 1, 3, 7, 31, 64, 1000, 4097};
constexpr std::size_t max_size = 4097;
constexpr std::size_t source_counts[] = {1, 2, 3, 5, 17};

class LoopsOfType : public testing::TestWithParam<std::tuple<const Loops*, DType>> {
 protected:
  const Loops& loops_ = *std::get<0>(GetParam());
  DType dtype_ = std::get<1>(GetParam());
};

TEST_P(LoopsOfType, CombineMatchesScalars) {
  core::visit(dtype_, [&]<class T>(std::type_identity<T>) {
    const Inputs<T> inputs(2, max_size);
    for (const ReduceOp op : all_reduce_ops) {
      const std::vector<T> expected = inputs.expected(op, 2, 1);
      for (const std::size_t n : sizes) {
        Guarded<T> dst(n, n % 3);
        loops_.find_combine(dtype_, op)(dst.data(), inputs.pointers[0], inputs.pointers[1], n);
        EXPECT_TRUE(holds(dst, expected, n)) << name(op);
      }
    }
  });
}

TEST_P(LoopsOfType, CombineWorksInPlace) {
  core::visit(dtype_, [&]<class T>(std::type_identity<T>) {
    const Inputs<T> inputs(2, max_size);
    for (const ReduceOp op : all_reduce_ops) {
      const std::vector<T> expected = inputs.expected(op, 2, 1);
      Guarded<T> first(inputs.values[0], 1);
      loops_.find_combine(dtype_, op)(first.data(), first.data(), inputs.pointers[1], max_size);
      EXPECT_TRUE(holds(first, expected, max_size)) << name(op);
      Guarded<T> second(inputs.values[1], 2);
      loops_.find_combine(dtype_, op)(second.data(), inputs.pointers[0], second.data(), max_size);
      EXPECT_TRUE(holds(second, expected, max_size)) << name(op);
    }
  });
}

TEST_P(LoopsOfType, FoldMatchesScalars) {
  core::visit(dtype_, [&]<class T>(std::type_identity<T>) {
    const Inputs<T> inputs(17, max_size);
    for (const ReduceOp op : all_reduce_ops) {
      const Fold fold = loops_.find_fold(dtype_, op);
      for (const std::size_t n_sources : source_counts) {
        const int divisor = op == ReduceOp::avg ? static_cast<int>(n_sources) : 1;
        const std::vector<T> expected = inputs.expected(op, n_sources, divisor);
        for (const std::size_t n : sizes) {
          for (const bool stream : {false, true}) {
            const std::span sources(inputs.pointers.data(), n_sources);
            Guarded<T> alone(n, n % 7);
            fold({alone.data(), nullptr, stream}, sources, n, divisor);
            EXPECT_TRUE(holds(alone, expected, n)) << name(op) << ", sources " << n_sources << ", stream " << stream;
            Guarded<T> first(n, (n + 1) % 5);
            Guarded<T> second(n, n % 3);
            fold({first.data(), second.data(), stream}, sources, n, divisor);
            EXPECT_TRUE(holds(first, expected, n)) << name(op) << ", sources " << n_sources << ", stream " << stream;
            EXPECT_TRUE(holds(second, expected, n)) << name(op) << ", sources " << n_sources << ", stream " << stream;
          }
        }
      }
    }
  });
}

TEST_P(LoopsOfType, FoldWorksOnOneOfItsSources) {
  core::visit(dtype_, [&]<class T>(std::type_identity<T>) {
    constexpr std::size_t n_sources = 5;
    const Inputs<T> inputs(n_sources, max_size);
    for (const ReduceOp op : all_reduce_ops) {
      const std::vector<T> expected = inputs.expected(op, n_sources, 1);
      for (const std::size_t own : {std::size_t{0}, std::size_t{2}, n_sources - 1}) {
        for (const bool stream : {false, true}) {
          Guarded<T> first(inputs.values[own], 3);
          Guarded<T> second(max_size, 1);
          std::vector<const std::byte*> sources = inputs.pointers;
          sources[own] = first.data();
          loops_.find_fold(dtype_, op)({first.data(), second.data(), stream}, sources, max_size, 1);
          EXPECT_TRUE(holds(first, expected, max_size)) << name(op) << ", own source " << own;
          EXPECT_TRUE(holds(second, expected, max_size)) << name(op) << ", own source " << own;
        }
      }
    }
  });
}

TEST_P(LoopsOfType, AverageDividesTheSumByAnyNumberOfRanks) {
  core::visit(dtype_, [&]<class T>(std::type_identity<T>) {
    const Inputs<T> inputs(3, max_size);
    for (const int divisor : {2, 3, 7, 128, 200, 1000, 65537, 20'000'000}) {
      const std::vector<T> expected = inputs.expected(ReduceOp::avg, 3, divisor);
      Guarded<T> first(max_size, 1);
      loops_.find_fold(dtype_, ReduceOp::avg)({first.data()}, inputs.pointers, max_size, divisor);
      EXPECT_TRUE(holds(first, expected, max_size)) << "divisor " << divisor;
    }
  });
}

TEST_P(LoopsOfType, DivideMatchesScalars) {
  core::visit(dtype_, [&]<class T>(std::type_identity<T>) {
    const Inputs<T> inputs(1, max_size);
    for (const int divisor : {1, 2, 3, 5, 127, 255, 4096, 65535, 1'000'000'007}) {
      const std::vector<T> expected = inputs.expected(ReduceOp::avg, 1, divisor);
      for (const std::size_t n : sizes) {
        Guarded<T> dst(n, n % 4);
        loops_.find_divide(dtype_)(dst.data(), inputs.pointers[0], n, divisor);
        EXPECT_TRUE(holds(dst, expected, n)) << "divisor " << divisor;
      }
      Guarded<T> own(inputs.values[0], 2);
      loops_.find_divide(dtype_)(own.data(), own.data(), max_size, divisor);
      EXPECT_TRUE(holds(own, expected, max_size)) << "divisor " << divisor;
    }
  });
}

TEST_P(LoopsOfType, SpecialValuesMeetEachOther) {
  core::visit(dtype_, [&]<class T>(std::type_identity<T>) {
    const std::vector<T> specials = test::special_values<T>();
    std::vector<std::vector<T>> pairs(2);
    for (const T a : specials) {
      for (const T b : specials) {
        pairs[0].push_back(a);
        pairs[1].push_back(b);
      }
    }
    Guarded<T> a(pairs[0], 0);
    Guarded<T> b(pairs[1], 0);
    const std::size_t n = pairs[0].size();
    for (const ReduceOp op : all_reduce_ops) {
      std::vector<T> expected(n);
      for (std::size_t i = 0; i < n; ++i) expected[i] = test::scalar_fold(op, pairs, 2, i, 1);
      Guarded<T> dst(n, 0);
      loops_.find_combine(dtype_, op)(dst.data(), a.data(), b.data(), n);
      EXPECT_TRUE(holds(dst, expected, n)) << name(op);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(AllSets, LoopsOfType,
                         testing::Combine(testing::ValuesIn(core::available_loops<Loops>().begin(),
                                                            core::available_loops<Loops>().end()),
                                          testing::ValuesIn(core::all_dtypes)),
                         [](const auto& test) {
                           return std::string(name(std::get<0>(test.param)->isa)) + "_" +
                                  std::string(core::name(std::get<1>(test.param)));
                         });

class LoopsOfSet : public testing::TestWithParam<const Loops*> {
 protected:
  template <class T>
  std::vector<T> combine(DType dtype, ReduceOp op, const std::vector<T>& a, const std::vector<T>& b) {
    Guarded<T> x(a, 0);
    Guarded<T> y(b, 0);
    Guarded<T> dst(a.size(), 0);
    loops_.find_combine(dtype, op)(dst.data(), x.data(), y.data(), a.size());
    return elements(dst, a.size());
  }
  template <class T>
  std::vector<T> fold(DType dtype, ReduceOp op, const std::vector<std::vector<T>>& values, int divisor) {
    std::vector<Guarded<T>> memory;
    for (const auto& source : values) memory.emplace_back(source, 0);
    std::vector<const std::byte*> sources;
    for (auto& source : memory) sources.push_back(source.data());
    Guarded<T> first(values[0].size(), 0);
    loops_.find_fold(dtype, op)({first.data()}, sources, values[0].size(), divisor);
    return elements(first, values[0].size());
  }
  template <class T>
  static std::vector<T> elements(const Guarded<T>& memory, std::size_t n) {
    std::vector<T> result(n);
    for (std::size_t i = 0; i < n; ++i) result[i] = memory[i];
    return result;
  }

  const Loops& loops_ = *GetParam();
};

TEST_P(LoopsOfSet, IntegersWrapAround) {
  const auto repeat = []<class T>(T value) { return std::vector<T>(100, value); };
  using I8 = std::int8_t;
  using I16 = std::int16_t;
  using I32 = std::int32_t;
  EXPECT_EQ(combine(DType::int8, ReduceOp::sum, repeat(I8{100}), repeat(I8{100})), repeat(I8{-56}));
  EXPECT_EQ(combine(DType::int16, ReduceOp::prod, repeat(I16{300}), repeat(I16{300})), repeat(I16{24464}));
  EXPECT_EQ(combine(DType::int32, ReduceOp::sum, repeat(I32{2147483647}), repeat(I32{1})),
            repeat(I32{-2147483647 - 1}));
  EXPECT_EQ(combine(DType::uint64, ReduceOp::sum, repeat(~std::uint64_t{0}), repeat(std::uint64_t{3})),
            repeat(std::uint64_t{2}));
}

TEST_P(LoopsOfSet, IntegerAveragesTruncateTowardZero) {
  const auto repeat = []<class T>(T value) { return std::vector<T>(100, value); };
  using I8 = std::int8_t;
  using I64 = std::int64_t;
  EXPECT_EQ(fold<I8>(DType::int8, ReduceOp::avg, {repeat(I8{-4}), repeat(I8{-3})}, 2), repeat(I8{-3}));
  EXPECT_EQ(fold<I8>(DType::int8, ReduceOp::avg, {repeat(I8{4}), repeat(I8{3})}, 2), repeat(I8{3}));
  EXPECT_EQ(fold<I64>(DType::int64, ReduceOp::avg, {repeat(I64{-8}), repeat(I64{0}), repeat(I64{0})}, 3),
            repeat(I64{-2}));
}

TEST_P(LoopsOfSet, FoldOfHalvesRoundsOnce) {
  // 256 + 1 is 256 in bfloat16, so rounding each of 16 sums would lose them all; 2048 + 1 likewise in float16.
  std::vector sources(17, std::vector(100, bfloat16(1.0F)));
  sources[0].assign(100, bfloat16(256.0F));
  for (const bfloat16 sum : fold(DType::bfloat16, ReduceOp::sum, sources, 1))
    EXPECT_EQ(static_cast<float>(sum), 272.0F);
  std::vector halves(17, std::vector(100, float16(1.0F)));
  halves[0].assign(100, float16(2048.0F));
  for (const float16 sum : fold(DType::float16, ReduceOp::sum, halves, 1)) EXPECT_EQ(static_cast<float>(sum), 2064.0F);
  for (const float16 sum : combine(DType::float16, ReduceOp::sum, halves[0], halves[1]))
    EXPECT_EQ(static_cast<float>(sum), 2048.0F);
}

TEST_P(LoopsOfSet, EveryHalfSurvivesAndRoundsAsInCore) {
  const auto check = [&]<class T>(DType dtype, std::type_identity<T>) {
    std::vector<T> all(65536);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = T::from_bits(static_cast<std::uint16_t>(i));
    const std::vector<T> same = fold<T>(dtype, ReduceOp::sum, {all}, 1);
    for (std::size_t i = 0; i < all.size(); ++i) ASSERT_TRUE(is_same(same[i], all[i])) << i;
    for (const int divisor : {2, 3, 5, 1000}) {  // halving makes ties among the subnormals
      const std::vector<T> quotients = fold<T>(dtype, ReduceOp::avg, {all}, divisor);
      for (std::size_t i = 0; i < all.size(); ++i)
        ASSERT_TRUE(is_same(quotients[i], T(static_cast<float>(all[i]) / static_cast<float>(divisor)))) << i;
    }
  };
  check(DType::float16, std::type_identity<float16>{});
  check(DType::bfloat16, std::type_identity<bfloat16>{});
}

TEST_P(LoopsOfSet, MinAndMaxOfANaNAreNaNWhereverItComes) {
  constexpr std::size_t n_sources = 5;
  const auto check = [&]<class T>(DType dtype, std::type_identity<T>) {
    const T nan{std::numeric_limits<float>::quiet_NaN()};
    std::vector sources(n_sources, std::vector<T>(103, T{1.0F}));  // whole tiles, whole vectors and single elements
    for (std::size_t i = 0; i < 103; ++i)
      if (i % (n_sources + 1) < n_sources) sources[i % (n_sources + 1)][i] = nan;
    for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
      const std::vector<T> result = fold<T>(dtype, op, sources, 1);
      for (std::size_t i = 0; i < result.size(); ++i)
        EXPECT_TRUE(is_same(result[i], i % (n_sources + 1) < n_sources ? nan : T{1.0F})) << name(op) << ' ' << i;
    }
  };
  check(DType::float16, std::type_identity<float16>{});
  check(DType::bfloat16, std::type_identity<bfloat16>{});
  check(DType::float32, std::type_identity<float>{});
  check(DType::float64, std::type_identity<double>{});
}

TEST_P(LoopsOfSet, MinAndMaxKeepTheFirstOfEqualZeros) {
  const std::vector<float> a{0.0F, -0.0F};
  const std::vector<float> b{-0.0F, 0.0F};
  for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
    const std::vector<float> result = combine(DType::float32, op, a, b);
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(is_same(result[i], a[i])) << name(op) << ' ' << i;
  }
}

TEST_P(LoopsOfSet, CopyStreamingCopies) {
  std::mt19937_64 random{1};
  const std::vector<std::uint8_t> values = test::random_values<std::uint8_t>(70'001, random);
  for (const std::size_t n : {0, 1, 63, 64, 65, 511, 1000, 4096, 70'001}) {
    for (const std::size_t shift : {0, 1, 17, 63}) {
      Guarded<std::uint8_t> src({values.begin(), values.begin() + static_cast<std::ptrdiff_t>(n)}, (shift + 5) % 64);
      Guarded<std::uint8_t> dst(n, shift);
      loops_.copy_streaming(dst.data(), src.data(), n);
      EXPECT_TRUE(holds(dst, values, n)) << "shift " << shift;
    }
  }
}

TEST_P(LoopsOfSet, CanBeForced) {
  force_loops(GetParam()->isa);
  const Loops* forced = &loops();
  force_loops(core::available_loops<Loops>().back()->isa);
  EXPECT_EQ(forced, GetParam());
}

INSTANTIATE_TEST_SUITE_P(AllSets, LoopsOfSet,
                         testing::ValuesIn(core::available_loops<Loops>().begin(),
                                           core::available_loops<Loops>().end()),
                         [](const auto& test) { return std::string(name(test.param->isa)); });

TEST(Loops, PlainIsAlwaysThereAndTheLastIsUsed) {
  ASSERT_FALSE(core::available_loops<Loops>().empty());
  EXPECT_EQ(core::available_loops<Loops>().front()->isa, Isa::plain);
  EXPECT_EQ(&loops(), core::available_loops<Loops>().back());
}

TEST(Loops, ForcingASetThatIsNotThereFails) {
  const auto is_available = [](Isa isa) {
    return std::ranges::any_of(core::available_loops<Loops>(), [&](const Loops* set) { return set->isa == isa; });
  };
  for (const Isa isa : {Isa::plain, Isa::avx2, Isa::avx512, static_cast<Isa>(99)}) {
    if (is_available(isa)) continue;
    try {
      force_loops(isa);
      ADD_FAILURE() << "accepted " << name(isa);
    } catch (const core::Error& error) {
      EXPECT_EQ(error.code(), core::ExitCode::usage);
      EXPECT_NE(error.problem().expected.find("plain"), std::string::npos);
    }
  }
  EXPECT_EQ(&loops(), core::available_loops<Loops>().back());
}

}  // namespace
}  // namespace lockstep::comm
