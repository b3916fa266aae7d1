#include "comm/kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "core/error.hpp"

namespace lockstep::comm {
namespace {

using core::bfloat16;
using core::DType;
using core::float16;

constexpr std::size_t sizes[] = {0, 1, 3, 7, 31, 64, 1000, 4097};
constexpr std::size_t max_size = 4097;
constexpr std::size_t source_counts[] = {1, 2, 3, 5, 17};

// The oracle: one element at a time, with core's conversions.

template <class T>
constexpr bool is_half = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;
template <class T>
using ValueOf = std::conditional_t<is_half<T>, float, T>;

template <class V>
V apply(ReduceOp op, V a, V b) {
  switch (op) {
    case ReduceOp::min: return b < a ? b : a;
    case ReduceOp::max: return b > a ? b : a;
    case ReduceOp::prod:
      if constexpr (std::is_integral_v<V>)
        return static_cast<V>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
      else
        return a * b;
    case ReduceOp::sum:
    case ReduceOp::avg: break;
  }
  if constexpr (std::is_integral_v<V>)
    return static_cast<V>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  else
    return a + b;
}

template <class V>
V quotient(V value, int divisor) {
  if constexpr (std::is_floating_point_v<V>)
    return value / static_cast<V>(divisor);
  else if constexpr (std::is_signed_v<V>)
    return static_cast<V>(static_cast<std::int64_t>(value) / divisor);
  else
    return static_cast<V>(static_cast<std::uint64_t>(value) / static_cast<std::uint64_t>(divisor));
}

template <class T>
T scalar_fold(ReduceOp op, const std::vector<std::vector<T>>& sources, std::size_t n_sources, std::size_t i,
              int divisor) {
  auto value = static_cast<ValueOf<T>>(sources[0][i]);
  for (std::size_t s = 1; s < n_sources; ++s) value = apply(op, value, static_cast<ValueOf<T>>(sources[s][i]));
  return static_cast<T>(divisor == 1 ? value : quotient(value, divisor));
}

// Test data.

template <class T>
std::vector<T> special_values() {
  if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    return {
        T{0}, T{1}, T{2}, T{100}, Limits::max(), Limits::min(), static_cast<T>(-1), static_cast<T>(Limits::max() / 2)};
  } else {
    using Limits = std::numeric_limits<ValueOf<T>>;
    std::vector<T> values;
    for (const double v :
         {0.0, 1.0, 1.5, 3.0, 1.0 / 3, 65504.0, 65519.0, 65520.0, 0x1p-14, 0x1.8p-24, 0x1p-25, 0x1p-133})
      for (const double sign : {1.0, -1.0}) values.push_back(static_cast<T>(static_cast<ValueOf<T>>(sign * v)));
    for (const auto v : {Limits::infinity(), Limits::quiet_NaN(), Limits::max(), Limits::min(), Limits::denorm_min()})
      for (const auto w : {v, -v}) values.push_back(static_cast<T>(w));
    return values;
  }
}

/// Special values, any bits, and values near one, where sums round and products do not overflow.
template <class T>
std::vector<T> random_values(std::size_t n, std::mt19937_64& random) {
  const std::vector<T> specials = special_values<T>();
  std::vector<T> values(n);
  for (T& value : values) {
    const std::uint64_t bits = random();
    if (bits % 8 == 0) {
      value = specials[(bits >> 8) % specials.size()];
    } else if (bits % 8 < 4 || std::is_integral_v<T>) {
      const std::uint64_t any = random();
      std::memcpy(static_cast<void*>(&value), &any, sizeof(T));
    } else {
      value = static_cast<T>(static_cast<ValueOf<T>>(std::ldexp(static_cast<double>(bits >> 11), -53) * 3 - 1));
    }
  }
  return values;
}

/// Memory for n elements that starts `shift` elements after a cache line and knows whether its surroundings changed.
template <class T>
class Guarded {
 public:
  Guarded(std::size_t n, std::size_t shift) : bytes_(n * sizeof(T) + shift * sizeof(T) + 3 * guard, fill), n_{n} {
    void* start = bytes_.data() + guard;
    std::size_t space = bytes_.size() - guard;
    begin_ =
        static_cast<std::byte*>(std::align(guard, n * sizeof(T) + shift * sizeof(T), start, space)) + shift * sizeof(T);
  }
  Guarded(const std::vector<T>& values, std::size_t shift) : Guarded(values.size(), shift) {
    if (n_ != 0) std::memcpy(begin_, values.data(), n_ * sizeof(T));
  }

  [[nodiscard]] std::byte* data() { return begin_; }
  [[nodiscard]] bool is_guard_intact() const {
    const std::byte* end = begin_ + n_ * sizeof(T);
    const auto is_fill = [](std::byte b) { return b == fill; };
    return std::all_of(bytes_.data(), static_cast<const std::byte*>(begin_), is_fill) &&
           std::all_of(end, bytes_.data() + bytes_.size(), is_fill);
  }
  [[nodiscard]] T operator[](std::size_t i) const {
    T value;
    std::memcpy(static_cast<void*>(&value), begin_ + i * sizeof(T), sizeof(T));
    return value;
  }

 private:
  static constexpr std::size_t guard = 64;
  static constexpr std::byte fill{0xa5};
  std::vector<std::byte> bytes_;
  std::size_t n_;
  std::byte* begin_ = nullptr;
};

template <class T>
bool is_same(T a, T b) {
  if constexpr (!std::is_integral_v<T>)
    if (std::isnan(static_cast<ValueOf<T>>(a)) && std::isnan(static_cast<ValueOf<T>>(b))) return true;
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class T>
std::string show(T value) {
  return std::to_string(static_cast<ValueOf<T>>(value));
}

/// The first n elements equal the expected ones, bit for bit (a NaN equals any NaN), and the guards are untouched.
template <class T>
testing::AssertionResult holds(const Guarded<T>& actual, const std::vector<T>& expected, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i)
    if (!is_same(actual[i], expected[i]))
      return testing::AssertionFailure() << "element " << i << " of " << n << " is " << show(actual[i]) << ", expected "
                                         << show(expected[i]);
  if (!actual.is_guard_intact()) return testing::AssertionFailure() << "bytes outside the " << n << " elements changed";
  return testing::AssertionSuccess();
}

/// Sources of one type at different alignments, and what folding the first of them gives.
template <class T>
struct Inputs {
  std::vector<std::vector<T>> values;
  std::vector<Guarded<T>> memory;
  std::vector<const std::byte*> pointers;

  explicit Inputs(std::size_t n_sources, std::size_t n = max_size) {
    std::mt19937_64 random{20240607};
    for (std::size_t s = 0; s < n_sources; ++s) values.push_back(random_values<T>(n, random));
    for (std::size_t s = 0; s < n_sources; ++s) memory.emplace_back(values[s], s % 5);
    for (Guarded<T>& source : memory) pointers.push_back(source.data());
  }

  [[nodiscard]] std::vector<T> expected(ReduceOp op, std::size_t n_sources, int divisor) const {
    std::vector<T> result(values[0].size());
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = scalar_fold(op, values, n_sources, i, divisor);
    return result;
  }
};

class KernelsOfType : public testing::TestWithParam<std::tuple<const Kernels*, DType>> {
 protected:
  const Kernels& kernels_ = *std::get<0>(GetParam());
  DType dtype_ = std::get<1>(GetParam());
};

TEST_P(KernelsOfType, CombineMatchesScalars) {
  core::visit(dtype_, [&]<class T>(std::type_identity<T>) {
    const Inputs<T> inputs(2);
    for (const ReduceOp op : all_reduce_ops) {
      const std::vector<T> expected = inputs.expected(op, 2, 1);
      for (const std::size_t n : sizes) {
        Guarded<T> dst(n, n % 3);
        kernels_.find_combine(dtype_, op)(dst.data(), inputs.pointers[0], inputs.pointers[1], n);
        EXPECT_TRUE(holds(dst, expected, n)) << name(op);
      }
    }
  });
}

TEST_P(KernelsOfType, CombineWorksInPlace) {
  core::visit(dtype_, [&]<class T>(std::type_identity<T>) {
    const Inputs<T> inputs(2);
    for (const ReduceOp op : all_reduce_ops) {
      const std::vector<T> expected = inputs.expected(op, 2, 1);
      Guarded<T> first(inputs.values[0], 1);
      kernels_.find_combine(dtype_, op)(first.data(), first.data(), inputs.pointers[1], max_size);
      EXPECT_TRUE(holds(first, expected, max_size)) << name(op);
      Guarded<T> second(inputs.values[1], 2);
      kernels_.find_combine(dtype_, op)(second.data(), inputs.pointers[0], second.data(), max_size);
      EXPECT_TRUE(holds(second, expected, max_size)) << name(op);
    }
  });
}

TEST_P(KernelsOfType, FoldMatchesScalars) {
  core::visit(dtype_, [&]<class T>(std::type_identity<T>) {
    const Inputs<T> inputs(17);
    for (const ReduceOp op : all_reduce_ops) {
      const Fold fold = kernels_.find_fold(dtype_, op);
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

TEST_P(KernelsOfType, FoldWorksOnOneOfItsSources) {
  core::visit(dtype_, [&]<class T>(std::type_identity<T>) {
    constexpr std::size_t n_sources = 5;
    const Inputs<T> inputs(n_sources);
    for (const ReduceOp op : all_reduce_ops) {
      const std::vector<T> expected = inputs.expected(op, n_sources, 1);
      for (const std::size_t own : {std::size_t{0}, std::size_t{2}, n_sources - 1}) {
        for (const bool stream : {false, true}) {
          Guarded<T> first(inputs.values[own], 3);
          Guarded<T> second(max_size, 1);
          std::vector<const std::byte*> sources = inputs.pointers;
          sources[own] = first.data();
          kernels_.find_fold(dtype_, op)({first.data(), second.data(), stream}, sources, max_size, 1);
          EXPECT_TRUE(holds(first, expected, max_size)) << name(op) << ", own source " << own;
          EXPECT_TRUE(holds(second, expected, max_size)) << name(op) << ", own source " << own;
        }
      }
    }
  });
}

TEST_P(KernelsOfType, AverageDividesTheSumByAnyNumberOfRanks) {
  core::visit(dtype_, [&]<class T>(std::type_identity<T>) {
    const Inputs<T> inputs(3);
    for (const int divisor : {2, 3, 7, 128, 200, 1000, 65537, 20'000'000}) {
      const std::vector<T> expected = inputs.expected(ReduceOp::avg, 3, divisor);
      Guarded<T> first(max_size, 1);
      kernels_.find_fold(dtype_, ReduceOp::avg)({first.data()}, inputs.pointers, max_size, divisor);
      EXPECT_TRUE(holds(first, expected, max_size)) << "divisor " << divisor;
    }
  });
}

TEST_P(KernelsOfType, DivideMatchesScalars) {
  core::visit(dtype_, [&]<class T>(std::type_identity<T>) {
    const Inputs<T> inputs(1);
    for (const int divisor : {1, 2, 3, 5, 127, 255, 4096, 65535, 1'000'000'007}) {
      const std::vector<T> expected = inputs.expected(ReduceOp::avg, 1, divisor);
      for (const std::size_t n : sizes) {
        Guarded<T> dst(n, n % 4);
        kernels_.find_divide(dtype_)(dst.data(), inputs.pointers[0], n, divisor);
        EXPECT_TRUE(holds(dst, expected, n)) << "divisor " << divisor;
      }
      Guarded<T> own(inputs.values[0], 2);
      kernels_.find_divide(dtype_)(own.data(), own.data(), max_size, divisor);
      EXPECT_TRUE(holds(own, expected, max_size)) << "divisor " << divisor;
    }
  });
}

TEST_P(KernelsOfType, SpecialValuesMeetEachOther) {
  core::visit(dtype_, [&]<class T>(std::type_identity<T>) {
    const std::vector<T> specials = special_values<T>();
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
      for (std::size_t i = 0; i < n; ++i) expected[i] = scalar_fold(op, pairs, 2, i, 1);
      Guarded<T> dst(n, 0);
      kernels_.find_combine(dtype_, op)(dst.data(), a.data(), b.data(), n);
      EXPECT_TRUE(holds(dst, expected, n)) << name(op);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(AllSets, KernelsOfType,
                         testing::Combine(testing::ValuesIn(available_kernels().begin(), available_kernels().end()),
                                          testing::ValuesIn(core::all_dtypes)),
                         [](const auto& test) {
                           return std::string(name(std::get<0>(test.param)->isa)) + "_" +
                                  std::string(core::name(std::get<1>(test.param)));
                         });

class KernelsOfSet : public testing::TestWithParam<const Kernels*> {
 protected:
  template <class T>
  std::vector<T> combine(DType dtype, ReduceOp op, const std::vector<T>& a, const std::vector<T>& b) {
    Guarded<T> x(a, 0);
    Guarded<T> y(b, 0);
    Guarded<T> dst(a.size(), 0);
    kernels_.find_combine(dtype, op)(dst.data(), x.data(), y.data(), a.size());
    return elements(dst, a.size());
  }
  template <class T>
  std::vector<T> fold(DType dtype, ReduceOp op, const std::vector<std::vector<T>>& values, int divisor) {
    std::vector<Guarded<T>> memory;
    for (const auto& source : values) memory.emplace_back(source, 0);
    std::vector<const std::byte*> sources;
    for (auto& source : memory) sources.push_back(source.data());
    Guarded<T> first(values[0].size(), 0);
    kernels_.find_fold(dtype, op)({first.data()}, sources, values[0].size(), divisor);
    return elements(first, values[0].size());
  }
  template <class T>
  static std::vector<T> elements(const Guarded<T>& memory, std::size_t n) {
    std::vector<T> result(n);
    for (std::size_t i = 0; i < n; ++i) result[i] = memory[i];
    return result;
  }

  const Kernels& kernels_ = *GetParam();
};

TEST_P(KernelsOfSet, IntegersWrapAround) {
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

TEST_P(KernelsOfSet, IntegerAveragesTruncateTowardZero) {
  const auto repeat = []<class T>(T value) { return std::vector<T>(100, value); };
  using I8 = std::int8_t;
  using I64 = std::int64_t;
  EXPECT_EQ(fold<I8>(DType::int8, ReduceOp::avg, {repeat(I8{-4}), repeat(I8{-3})}, 2), repeat(I8{-3}));
  EXPECT_EQ(fold<I8>(DType::int8, ReduceOp::avg, {repeat(I8{4}), repeat(I8{3})}, 2), repeat(I8{3}));
  EXPECT_EQ(fold<I64>(DType::int64, ReduceOp::avg, {repeat(I64{-8}), repeat(I64{0}), repeat(I64{0})}, 3),
            repeat(I64{-2}));
}

TEST_P(KernelsOfSet, FoldOfHalvesRoundsOnce) {
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

TEST_P(KernelsOfSet, EveryHalfSurvivesAndRoundsAsInCore) {
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

TEST_P(KernelsOfSet, MinAndMaxKeepTheFirstUnlessTheSecondIsBeyondIt) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> a{0.0F, -0.0F, nan, 1.0F, 2.0F, 0.0F, -0.0F, nan, 1.0F, 2.0F};
  const std::vector<float> b{-0.0F, 0.0F, 1.0F, nan, 1.0F, -0.0F, 0.0F, 1.0F, nan, 1.0F};
  const std::vector<float> minima = combine(DType::float32, ReduceOp::min, a, b);
  const std::vector<float> maxima = combine(DType::float32, ReduceOp::max, a, b);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(is_same(minima[i], i % 5 == 4 ? b[i] : a[i])) << i;
    EXPECT_TRUE(is_same(maxima[i], a[i])) << i;
  }
}

TEST_P(KernelsOfSet, CopyStreamingCopies) {
  std::mt19937_64 random{1};
  const std::vector<std::uint8_t> values = random_values<std::uint8_t>(70'001, random);
  for (const std::size_t n : {0, 1, 63, 64, 65, 511, 1000, 4096, 70'001}) {
    for (const std::size_t shift : {0, 1, 17, 63}) {
      Guarded<std::uint8_t> src({values.begin(), values.begin() + static_cast<std::ptrdiff_t>(n)}, (shift + 5) % 64);
      Guarded<std::uint8_t> dst(n, shift);
      kernels_.copy_streaming(dst.data(), src.data(), n);
      EXPECT_TRUE(holds(dst, values, n)) << "shift " << shift;
    }
  }
}

TEST_P(KernelsOfSet, CanBeForced) {
  force_kernels(GetParam()->isa);
  const Kernels* forced = &kernels();
  force_kernels(available_kernels().back()->isa);
  EXPECT_EQ(forced, GetParam());
}

INSTANTIATE_TEST_SUITE_P(AllSets, KernelsOfSet,
                         testing::ValuesIn(available_kernels().begin(), available_kernels().end()),
                         [](const auto& test) { return std::string(name(test.param->isa)); });

TEST(Kernels, PlainIsAlwaysThereAndTheLastIsUsed) {
  ASSERT_FALSE(available_kernels().empty());
  EXPECT_EQ(available_kernels().front()->isa, Isa::plain);
  EXPECT_EQ(&kernels(), available_kernels().back());
}

TEST(Kernels, ForcingASetThatIsNotThereFails) {
  const auto is_available = [](Isa isa) {
    return std::ranges::any_of(available_kernels(), [&](const Kernels* set) { return set->isa == isa; });
  };
  for (const Isa isa : {Isa::plain, Isa::avx2, Isa::avx512, static_cast<Isa>(99)}) {
    if (is_available(isa)) continue;
    try {
      force_kernels(isa);
      ADD_FAILURE() << "accepted " << name(isa);
    } catch (const core::Error& error) {
      EXPECT_EQ(error.code(), core::ExitCode::usage);
      EXPECT_NE(error.problem().expected.find("plain"), std::string::npos);
    }
  }
  EXPECT_EQ(&kernels(), available_kernels().back());
}

}  // namespace
}  // namespace lockstep::comm
