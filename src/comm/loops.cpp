// The loops of one instruction set, for vectors whose length and special instructions a `Simd` policy defines.
// Invariant: as loops_vectors.hpp; every set computes the same bits, except for which NaN results from two NaNs.
// Compiled once for each instruction set (lockstep_loop_sources).
#include "comm/loops.hpp"

#include <cstring>

#include "comm/loops_simd.hpp"

namespace lockstep::comm {
namespace {

/// Loads 16-bit floats as the policy converts them, or as ordered integers; other types unchanged.
template <class Simd, class T, std::size_t n>
[[gnu::always_inline]] inline auto load_values(const std::byte* from) {
  const auto memory = load<Vector<typename Element<T>::Memory, n>>(from);
  if constexpr (std::is_same_v<T, core::float16>)
    return Simd::template half_to_float<n>(memory);
  else if constexpr (std::is_same_v<T, core::bfloat16>)
    return bfloat_to_float<Simd, n>(memory);
  else if constexpr (is_ordered<T>)
    return T::from_bits(memory);
  else
    return memory;
}

template <class Simd, class T, std::size_t n>
[[gnu::always_inline]] inline auto to_memory(Vector<typename Element<T>::Value, n> values) {
  if constexpr (std::is_same_v<T, core::float16>)
    return Simd::template float_to_half<n>(values);
  else if constexpr (std::is_same_v<T, core::bfloat16>)
    return float_to_bfloat<Simd, n>(values);
  else if constexpr (is_ordered<T>)
    return turn_negatives(values);
  else
    return values;
}

/// Folds any number of sources. A tile of elements stays in registers while all sources pass over it, so each source is
/// read and each target written once, and `first` may be a source.
template <class Simd, class T, class Op>
class Folder {
 public:
  Folder(FoldTarget target, std::span<const std::byte* const> sources, int divisor)
      : target_{target}, sources_{sources}, divisor_{divisor} {}

  [[gnu::always_inline]] void run(std::size_t n) const {
    std::size_t at = 0;
    if (Simd::can_stream && target_.stream) {
      const std::size_t head = elements_to_alignment();
      at = run_tiles<1, 1, false>(0, head < n ? head : n);
      at = run_tiles<n_lanes, n_tile_vectors, true>(at, n);
      Simd::fence();
    }
    at = run_tiles<n_lanes, n_tile_vectors, false>(at, n);
    run_rest<n_lanes>(at, n);
  }

 private:
  using Value = typename Element<T>::Value;
  static constexpr std::size_t element_bytes = sizeof(typename Element<T>::Memory);
  static constexpr std::size_t n_lanes = Simd::vector_bytes / sizeof(Value);
  static constexpr std::size_t n_tile_vectors = 8;

  [[nodiscard]] std::size_t elements_to_alignment() const {
    const auto address = reinterpret_cast<std::uintptr_t>(target_.first);
    return (0 - address) % Simd::vector_bytes / element_bytes;
  }

  /// Folds whole tiles of [at, n); returns where they end.
  template <std::size_t lanes, std::size_t n_vectors, bool stream>
  [[gnu::always_inline]] std::size_t run_tiles(std::size_t at, std::size_t n) const {
    for (; n - at >= lanes * n_vectors; at += lanes * n_vectors) run_tile<lanes, n_vectors, stream>(at * element_bytes);
    return at;
  }

  /// Folds the rest after the tiles, with shorter and shorter vectors.
  template <std::size_t lanes>
  [[gnu::always_inline]] void run_rest(std::size_t at, std::size_t n) const {
    at = run_tiles<lanes, 1, false>(at, n);
    if constexpr (lanes > 1) run_rest<(lanes > 4 ? lanes / 4 : 1)>(at, n);
  }

  template <std::size_t lanes, std::size_t n_vectors, bool stream>
  [[gnu::always_inline]] void run_tile(std::size_t offset) const {
    constexpr std::size_t step = lanes * element_bytes;
    Vector<Value, lanes> tile[n_vectors];
    for (std::size_t v = 0; v < n_vectors; ++v) tile[v] = load_values<Simd, T, lanes>(sources_[0] + offset + v * step);
    for (std::size_t s = 1; s < sources_.size(); ++s) {
      const std::byte* source = sources_[s] + offset;
      for (std::size_t v = 0; v < n_vectors; ++v)
        tile[v] = Op::apply(tile[v], load_values<Simd, T, lanes>(source + v * step));
    }
    if (divisor_ != 1)
      for (auto& values : tile) values = divide(values, divisor_);
    for (std::size_t v = 0; v < n_vectors; ++v) {
      const auto result = to_memory<Simd, T, lanes>(tile[v]);
      if constexpr (stream)
        Simd::stream(target_.first + offset + v * step, result);
      else
        store(target_.first + offset + v * step, result);
      if (target_.second != nullptr) store(target_.second + offset + v * step, result);
    }
  }

  FoldTarget target_;
  std::span<const std::byte* const> sources_;
  int divisor_;
};

template <class Simd, class T, class Op>
void fold(FoldTarget target, std::span<const std::byte* const> sources, std::size_t n, int divisor) {
  Folder<Simd, T, Op>{target, sources, divisor}.run(n);
}

template <class Simd, class T, class Op>
void combine(std::byte* dst, const std::byte* a, const std::byte* b, std::size_t n) {
  const std::byte* const sources[] = {a, b};
  Folder<Simd, T, Op>{{.first = dst}, sources, 1}.run(n);
}

template <class Simd, class T>
void divide_all(std::byte* dst, const std::byte* src, std::size_t n, int divisor) {
  const std::byte* const sources[] = {src};
  Folder<Simd, T, Sum>{{.first = dst}, sources, divisor}.run(n);
}

template <class Simd>
void copy_streaming(std::byte* dst, const std::byte* src, std::size_t bytes) {
  if constexpr (!Simd::can_stream) {
    if (bytes != 0) std::memcpy(dst, src, bytes);
  } else {
    Folder<Simd, std::uint8_t, Sum>{{.first = dst, .stream = true}, {&src, 1}, 1}.run(bytes);
  }
}

template <class Simd, class T, class Op>
consteval void add_op(Loops& loops, core::DType dtype, ReduceOp op) {
  loops.combine[static_cast<std::size_t>(dtype)][static_cast<std::size_t>(op)] = &combine<Simd, T, Op>;
  loops.fold[static_cast<std::size_t>(dtype)][static_cast<std::size_t>(op)] = &fold<Simd, T, Op>;
}

/// `Least` and `Greatest`: the types in which Min and Max compare.
template <class Simd, class T, class Least = T, class Greatest = T>
consteval void add_type(Loops& loops, core::DType dtype) {
  add_op<Simd, T, Sum>(loops, dtype, ReduceOp::sum);
  add_op<Simd, T, Prod>(loops, dtype, ReduceOp::prod);
  add_op<Simd, Least, Min>(loops, dtype, ReduceOp::min);
  add_op<Simd, Greatest, Max>(loops, dtype, ReduceOp::max);
  add_op<Simd, T, Sum>(loops, dtype, ReduceOp::avg);
  loops.divide[static_cast<std::size_t>(dtype)] = &divide_all<Simd, T>;
}

template <class Simd>
consteval Loops make_loops() {
  Loops loops;
  loops.isa = core::this_loop_set;
  add_type<Simd, std::int8_t>(loops, core::DType::int8);
  add_type<Simd, std::uint8_t>(loops, core::DType::uint8);
  add_type<Simd, std::int16_t>(loops, core::DType::int16);
  add_type<Simd, std::uint16_t>(loops, core::DType::uint16);
  add_type<Simd, std::int32_t>(loops, core::DType::int32);
  add_type<Simd, std::uint32_t>(loops, core::DType::uint32);
  add_type<Simd, std::int64_t>(loops, core::DType::int64);
  add_type<Simd, std::uint64_t>(loops, core::DType::uint64);
  add_type<Simd, core::float16, Ordered<0x7c00, -0x8000>, Ordered<0x7c00, 0x7fff>>(loops, core::DType::float16);
  add_type<Simd, core::bfloat16, Ordered<0x7f80, -0x8000>, Ordered<0x7f80, 0x7fff>>(loops, core::DType::bfloat16);
  add_type<Simd, float>(loops, core::DType::float32);
  add_type<Simd, double>(loops, core::DType::float64);
  loops.copy_streaming = &copy_streaming<Simd>;
  return loops;
}

constexpr Loops these_loops = make_loops<Simd<core::this_loop_set>>();

}  // namespace

template <>
const Loops& Loops::version<core::this_loop_set>() noexcept {
  return these_loops;
}

}  // namespace lockstep::comm
