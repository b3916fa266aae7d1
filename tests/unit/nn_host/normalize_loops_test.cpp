#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/rng.hpp"
#include "nn/host/loops.hpp"

namespace lockstep::nn::host {
namespace {

/// Rows of channels, and the numbers that normalize them.
template <class T>
struct Table {
  Table(std::size_t rows, std::size_t columns, bool has_relu)
      : n_rows{rows},
        n_columns{columns},
        x(drawn<T>(rows * columns)),
        gradient(drawn<T>(rows * columns)),
        mean(drawn<float>(columns)),
        factor(drawn<float>(columns)),
        shift(drawn<float>(columns)),
        offset(drawn<float>(columns)),
        slope(drawn<float>(columns)),
        by{mean.data(), factor.data(), shift.data(), has_relu ? 0 : -std::numeric_limits<float>::infinity()} {}

  template <class V>
  std::vector<V> drawn(std::size_t n) {
    std::vector<V> values(n);
    for (V& value : values) value = V{static_cast<float>(random.uniform() - 0.5)};
    return values;
  }

  float deviation(std::size_t i) const { return static_cast<float>(x[i]) - mean[i % n_columns]; }
  float normalized(std::size_t i) const { return deviation(i) * factor[i % n_columns] + shift[i % n_columns]; }
  float passed(std::size_t i) const { return normalized(i) <= by.least ? 0 : static_cast<float>(gradient[i]); }

  core::Random random{5};
  std::size_t n_rows, n_columns;
  std::vector<T> x, gradient;
  std::vector<float> mean, factor, shift, offset, slope;
  Normalization by;
};

void expect_near_sums(const std::vector<double>& found, const std::vector<double>& wanted) {
  for (std::size_t c = 0; c < wanted.size(); ++c) ASSERT_NEAR(found[c], wanted[c], 1e-12 * (1 + std::abs(wanted[c])));
}

template <class T>
void expect_sums(const ElementLoops<T>& set, const Table<T>& table) {
  const std::size_t n = table.x.size(), n_columns = table.n_columns;
  const std::vector<double> means(table.mean.begin(), table.mean.end());
  std::vector<double> rows(n_columns, 1), squares(n_columns, 2), sums(n_columns, 3), products(n_columns, 4);
  auto wanted_rows = rows, wanted_squares = squares, wanted_sums = sums, wanted_products = products;
  set.add_rows(table.x.data(), table.n_rows, n_columns, rows.data());
  set.add_squares(table.x.data(), table.n_rows, n_columns, means.data(), squares.data());
  set.add_gradients(table.x.data(), table.gradient.data(), table.n_rows, n_columns, table.by, sums.data(),
                    products.data());
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t c = i % n_columns;
    const double x = static_cast<float>(table.x[i]);
    wanted_rows[c] += x;
    wanted_squares[c] += (x - means[c]) * (x - means[c]);
    wanted_sums[c] += static_cast<double>(table.passed(i));
    wanted_products[c] += static_cast<double>(table.passed(i) * table.deviation(i));
  }
  expect_near_sums(rows, wanted_rows);
  expect_near_sums(squares, wanted_squares);
  expect_near_sums(sums, wanted_sums);
  expect_near_sums(products, wanted_products);
}

template <class T>
void expect_elements(const ElementLoops<T>& set, const Table<T>& table) {
  const std::size_t n = table.x.size();
  std::vector<T> out(n + 1, T{42.0f});
  const auto bits = [](T value) {
    return std::bit_cast<std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint32_t>>(value);
  };
  set.normalize(table.x.data(), table.n_rows, table.n_columns, table.by, out.data());
  for (std::size_t i = 0; i < n; ++i)
    ASSERT_EQ(bits(out[i]), bits(T{std::max(table.normalized(i), table.by.least)})) << i;
  set.normalize_backward(table.x.data(), table.gradient.data(), table.n_rows, table.n_columns, table.by,
                         {table.offset.data(), table.slope.data()}, out.data());
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t c = i % table.n_columns;
    const float correction = table.deviation(i) * table.slope[c];
    ASSERT_EQ(bits(out[i]), bits(T{(table.passed(i) - table.offset[c] - correction) * table.factor[c]})) << i;
  }
  ASSERT_EQ(static_cast<float>(out[n]), 42);
}

TEST(NormalizeLoops, AreWhatTheySayAndTheSameBitsInAllSets) {
  for (const Loops* set : core::available_loops<Loops>()) {
    for (const std::size_t n_columns : {1u, 3u, 8u, 16u, 17u, 40u, 300u}) {
      for (const std::size_t n_rows : {1u, 7u, 100u}) {
        for (const bool has_relu : {false, true}) {
          SCOPED_TRACE(std::to_string(n_rows) + " rows of " + std::to_string(n_columns));
          const Table<float> floats{n_rows, n_columns, has_relu};
          const Table<core::bfloat16> bfloats{n_rows, n_columns, has_relu};
          expect_sums(set->floats, floats);
          expect_sums(set->bfloats, bfloats);
          expect_elements(set->floats, floats);
          expect_elements(set->bfloats, bfloats);
        }
      }
    }
  }
}

TEST(NormalizeLoops, LetNaNPassThroughReLU) {
  const std::vector<float> x(16, std::nanf("")), one(16, 1);
  for (const Loops* set : core::available_loops<Loops>()) {
    std::vector<float> out(16);
    set->floats.normalize(x.data(), 1, 16, {one.data(), one.data(), one.data(), 0}, out.data());
    for (const float y : out) EXPECT_TRUE(std::isnan(y));
  }
}

}  // namespace
}  // namespace lockstep::nn::host
