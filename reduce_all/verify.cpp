#include "reduce_all/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace lockstep::reduce_all {
namespace {

template <class T>
constexpr bool is_half = std::is_same_v<T, core::float16> || std::is_same_v<T, core::bfloat16>;

// Up to here every integer is exact in T; below the extremes, which are poison.
template <class T>
constexpr std::int64_t largest_exact() {
  constexpr std::int64_t most = std::int64_t{1} << 24;  // float32's limit, and enough for wider types
  if constexpr (std::is_same_v<T, core::bfloat16>) return 256;
  if constexpr (std::is_same_v<T, core::float16>) return 2048;
  if constexpr (std::is_integral_v<T> && sizeof(T) < 4) return std::numeric_limits<T>::max() - 1;
  return most;
}

template <class T>
constexpr bool is_signed_type = !std::is_unsigned_v<T>;

template <class T>
T from_integer(std::int64_t value) {
  if constexpr (is_half<T>)
    return T(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

// The type's rule for avg: integers truncate toward zero, 16-bit floats divide in float32 and round once.
template <class T>
T divide(std::int64_t sum, int divisor) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(sum / divisor);
  else if constexpr (is_half<T>)
    return T(static_cast<float>(sum) / static_cast<float>(divisor));
  else
    return static_cast<T>(sum) / static_cast<T>(divisor);
}

template <class T>
T poison_value() {
  if constexpr (is_half<T>)
    return T::from_bits(0xFFFF);
  else if constexpr (std::is_floating_point_v<T>)
    return std::numeric_limits<T>::quiet_NaN();
  else
    return std::is_signed_v<T> ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
}

// splitmix64's finaliser (Steele, Lea & Flood 2014): any change of `x` flips every bit with probability near one half.
std::uint64_t mix(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// The formulas of the header for one type, op and rank count.
class Formula {
 public:
  template <class T>
  static Formula make(comm::ReduceOp op, int n_ranks, std::uint64_t seed) {
    return {op, n_ranks, mix(seed + 1), largest_exact<T>(), is_signed_type<T>};
  }

  [[nodiscard]] std::int64_t contribution(int rank, std::uint64_t i) const {
    const Draw draw{*this, i};
    const std::int64_t u = (rank + draw.rotation) % n_ranks_;
    switch (op_) {
      case comm::ReduceOp::prod: return (u < draw.k ? 2 : 1) * (u == 0 ? draw.sign : 1);
      case comm::ReduceOp::min: return draw.base + std::min(u, w_);
      case comm::ReduceOp::max: return draw.base + w_ - std::min(u, w_);
      case comm::ReduceOp::sum:
      case comm::ReduceOp::avg: break;
    }
    return draw.sign * (draw.a + draw.c * std::max<std::int64_t>(w_ - u, 0));
  }

  // The combined value of all ranks; for avg before its division.
  [[nodiscard]] std::int64_t total(std::uint64_t i) const {
    const Draw draw{*this, i};
    switch (op_) {
      case comm::ReduceOp::prod: return draw.sign * (std::int64_t{1} << draw.k);
      case comm::ReduceOp::min: return draw.base;
      case comm::ReduceOp::max: return draw.base + w_;
      case comm::ReduceOp::sum:
      case comm::ReduceOp::avg: break;
    }
    return draw.sign * (n_ranks_ * draw.a + draw.c * weight_);
  }

 private:
  Formula(comm::ReduceOp op, int n_ranks, std::uint64_t key, std::int64_t most, bool has_sign)
      : op_{op}, n_ranks_{n_ranks}, key_{key}, has_sign_{has_sign}, half_{most / 2} {
    // Half of the range for c*w(w+1)/2, the other half for P*a.
    while (w_ < n_ranks && (w_ + 1) * (w_ + 2) / 2 <= half_) ++w_;
    weight_ = w_ * (w_ + 1) / 2;
    n_c_ = half_ / weight_;
    n_a_ = half_ / n_ranks + 1;
    n_k_ = std::min<std::int64_t>(n_ranks, std::bit_width(static_cast<std::uint64_t>(most)) - 1);
    if (op == comm::ReduceOp::min || op == comm::ReduceOp::max) w_ = std::min<std::int64_t>(n_ranks - 1, half_);
  }

  // The random quantities of element i.
  struct Draw {
    Draw(const Formula& f, std::uint64_t i) {
      std::uint64_t bits = mix(f.key_ + i * 0x9E3779B97F4A7C15u);
      sign = f.has_sign_ && (bits >> 63) != 0 ? -1 : 1;
      const auto below = [&bits](std::int64_t bound) {
        const auto value = static_cast<std::int64_t>((bits >> 32) % static_cast<std::uint64_t>(bound));
        bits = mix(bits);
        return value;
      };
      rotation = below(f.n_ranks_);
      a = below(f.n_a_);
      c = 1 + below(f.n_c_);
      k = below(f.n_k_ + 1);
      base = f.has_sign_ ? below(2 * f.half_ + 1) - f.half_ : below(f.half_ + 1);
    }
    std::int64_t sign, rotation, a, c, k, base;
  };

  comm::ReduceOp op_;
  int n_ranks_;
  std::uint64_t key_;
  bool has_sign_;
  std::int64_t half_;
  std::int64_t w_ = 1;
  std::int64_t weight_ = 1;
  std::int64_t n_c_ = 1;  ///< c is 1 ... n_c
  std::int64_t n_a_ = 1;  ///< a is 0 ... n_a - 1
  std::int64_t n_k_ = 1;  ///< k is 0 ... n_k
};

template <class T>
void append(std::vector<std::byte>& bytes, T value) {
  const auto* first = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), first, first + sizeof value);
}

// Makes `n` elements from `begin` on by `element(formula, i)`, with i taken modulo the period.
template <class T, class Element>
std::vector<std::byte> make_tile(const Formula& formula, std::size_t begin, std::size_t n, Element element) {
  std::vector<std::byte> tile;
  tile.reserve(n * sizeof(T));
  for (std::size_t j = 0; j < n; ++j) append<T>(tile, element(formula, (begin + j) % TestData::period));
  return tile;
}

std::vector<std::byte> make_input(const comm::Call& call, int rank, int n_ranks, std::uint64_t seed,
                                  core::Slice slice) {
  const std::size_t n = std::min(TestData::period, slice.count);
  return core::visit(call.dtype, [&]<class T>(std::type_identity<T>) {
    return make_tile<T>(Formula::make<T>(call.op, n_ranks, seed), slice.offset, n,
                        [&](const Formula& f, std::size_t i) { return from_integer<T>(f.contribution(rank, i)); });
  });
}

std::vector<std::byte> make_expected(const comm::Call& call, int n_ranks, std::uint64_t seed, core::Slice slice) {
  const std::size_t n = std::min(TestData::period, slice.count);
  const int divisor = call.op == comm::ReduceOp::avg ? n_ranks : 1;
  return core::visit(call.dtype, [&]<class T>(std::type_identity<T>) {
    return make_tile<T>(Formula::make<T>(call.op, n_ranks, seed), slice.offset, n,
                        [&](const Formula& f, std::size_t i) { return divide<T>(f.total(i), divisor); });
  });
}

// Cuts the first `n_bytes` of an endlessly repeated tile into whole and partial tiles: visit(offset, bytes).
template <class Visit>
void for_each_repetition(std::size_t tile_bytes, std::size_t n_bytes, Visit visit) {
  if (tile_bytes == 0) return;
  for (std::size_t offset = 0; offset < n_bytes; offset += tile_bytes)
    visit(offset, std::min(tile_bytes, n_bytes - offset));
}

std::uint64_t load(const std::byte* element, std::size_t size) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, element, size);
  return bits;
}

// Compares `output` with the repeated tile.
Mismatch compare_on_host(std::span<const std::byte> output, std::span<const std::byte> tile, std::size_t size) {
  Mismatch result;
  for_each_repetition(tile.size(), output.size(), [&](std::size_t offset, std::size_t bytes) {
    const std::byte* found = output.data() + offset;
    if (std::memcmp(found, tile.data(), bytes) == 0) return;
    for (std::size_t at = 0; at < bytes; at += size) {
      if (std::memcmp(found + at, tile.data() + at, size) == 0) continue;
      if (result.n_wrong++ == 0)
        result = {1, (offset + at) / size, load(tile.data() + at, size), load(found + at, size)};
    }
  });
  return result;
}

}  // namespace

void Mismatch::add(const Mismatch& other) noexcept {
  const std::uint64_t sum = n_wrong + other.n_wrong;
  if (n_wrong == 0) *this = other;
  n_wrong = sum;
}

std::string format_element(core::DType dtype, std::uint64_t bits) {
  return core::visit(dtype, [bits]<class T>(std::type_identity<T>) {
    T value{};
    std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
    const int n_digits = 2 * static_cast<int>(sizeof value);
    if constexpr (is_half<T>)
      return fmt::format("{} (0x{:0{}x})", static_cast<float>(value), bits, n_digits);
    else if constexpr (std::is_integral_v<T>)
      return fmt::format("{:d} (0x{:0{}x})", value, bits, n_digits);
    else
      return fmt::format("{} (0x{:0{}x})", value, bits, n_digits);
  });
}

TestData::TestData(const comm::Call& call, int rank, int n_ranks, std::uint64_t seed)
    : call_{call}, rank_{rank}, n_ranks_{n_ranks}, seed_{seed} {
  input_ = make_input(call, rank, n_ranks, seed, call.input(rank, n_ranks));
  if (call.collective != comm::Collective::all_gather)
    expected_ = make_expected(call, n_ranks, seed, call.output(rank, n_ranks));
}

void TestData::fill(std::span<std::byte> input) const {
  for_each_repetition(input_.size(), input.size(), [&](std::size_t offset, std::size_t bytes) {
    std::memcpy(input.data() + offset, input_.data(), bytes);
  });
}

void TestData::poison(std::span<std::byte> output) const {
  core::visit(call_.dtype, [output]<class T>(std::type_identity<T>) {
    auto* first = reinterpret_cast<T*>(output.data());
    std::fill(first, first + output.size() / sizeof(T), poison_value<T>());
  });
}

Mismatch TestData::check(std::span<const std::byte> output) const {
  return check_by(output.size(), [&](const core::Slice& part, std::span<const std::byte> tile) {
    return compare_on_host(part.of(output), tile, call_.element_size());
  });
}

Mismatch TestData::check_by(std::size_t n_bytes, const Compare& compare) const {
  const std::size_t size = call_.element_size();
  if (call_.collective != comm::Collective::all_gather) return compare({0, n_bytes}, expected_);
  Mismatch all;
  for (int q = 0; q < n_ranks_; ++q) {
    const core::Slice part = call_.part(q, n_ranks_);
    const std::vector<std::byte> tile = q == rank_ ? input_ : make_input(call_, q, n_ranks_, seed_, part);
    Mismatch one = compare({part.offset * size, part.count * size}, tile);
    one.index += part.offset;
    all.add(one);
  }
  return all;
}

}  // namespace lockstep::reduce_all
