#include "checkpoint/box.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"

namespace lockstep::checkpoint {

Box whole(std::string tensor, std::vector<std::uint64_t> shape) {
  Box box{.tensor = std::move(tensor), .shape = std::move(shape)};
  box.n_rows = static_cast<std::size_t>(box.shape.front());
  for (std::size_t d = 1; d < box.shape.size(); ++d) box.n_inner *= static_cast<std::size_t>(box.shape[d]);
  box.rows = {0, box.n_rows};
  return box;
}

namespace {

/// The place of a tensor's element in a box, and how many elements from it on are in the box; or, outside the box, how
/// many from it on are also outside.
struct Run {
  std::size_t at = 0;  ///< in the box
  std::size_t n = 0;   ///< consecutive elements of the tensor
  bool is_in = false;
};

Run run_at(const Box& box, std::size_t element) {
  const std::size_t plane = box.n_rows * box.n_inner;
  const std::size_t outer = element / plane, within = element % plane;
  const std::size_t begin = box.rows.offset * box.n_inner, end = box.rows.end() * box.n_inner;
  if (within < begin) return {.n = begin - within};
  if (within >= end) return {.n = plane - within};
  return {.at = outer * (end - begin) + within - begin, .n = end - within, .is_in = true};
}

/// Calls f(place in a, place in b, n) for all runs of n elements that both have.
template <class F>
void for_common(const Box& a, const Box& b, const F& f) {
  const std::size_t n = a.n_outer * a.n_rows * a.n_inner;
  core::require(n == b.n_outer * b.n_rows * b.n_inner, "both boxes belong to one tensor");
  for (std::size_t element = 0; element < n;) {
    const Run in_a = run_at(a, element), in_b = run_at(b, element);
    const std::size_t n_same = std::min(in_a.n, in_b.n);
    if (in_a.is_in && in_b.is_in) f(in_a.at, in_b.at, n_same);
    element += n_same;
  }
}

}  // namespace

std::size_t count_common(const Box& a, const Box& b) {
  if (a.n_outer == b.n_outer && a.n_rows == b.n_rows && a.n_inner == b.n_inner)
    return a.n_outer * core::intersection(a.rows, b.rows).count * a.n_inner;
  std::size_t n_common = 0;
  for_common(a, b, [&](std::size_t, std::size_t, std::size_t n) { n_common += n; });
  return n_common;
}

std::size_t copy_common(const Box& from, std::span<const float> source, const Box& to, std::span<float> target) {
  core::require(source.size() == from.n_elements() && target.size() == to.n_elements(),
                "source and target have the sizes of their boxes");
  std::size_t n_copied = 0;
  for_common(from, to, [&](std::size_t there, std::size_t here, std::size_t n) {
    std::ranges::copy(source.subspan(there, n), target.subspan(here, n).begin());
    n_copied += n;
  });
  return n_copied;
}

}  // namespace lockstep::checkpoint
